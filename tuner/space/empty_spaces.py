"""Why a strategy has no feasible configuration: the constraint that rejects the last, or the hardware."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tuner.core.candidate import Value
from tuner.space import enumeration
from tuner.space.expressions import Expression
from tuner.space.search_space import SearchSpace

UNDEFINED_SAMPLE = 1000  # combinations for which a constraint is evaluated, to say why it never holds
SAMPLE_SEED = 20_260_101  # fixed: equal spaces give equal lines
ANY_CAPABILITY = 999  # above the compute capability of every GPU

FLAGS: Mapping[str, str] = {  # variable of constraints that is 0 or 1 -> what the processor or GPU has with 1
    "has_amx_bf16": "AMX",
    "has_amx_int8": "AMX",
    "has_vnni": "VNNI",
    "has_bf16": "AVX-512 BF16",
    "has_wgmma": "wgmma",
}
AARCH64_FLAGS: Mapping[str, str] = {"has_dotprod": "dotprod", "has_i8mm": "i8mm", "has_arm_bf16": "bf16"}
AARCH64_VECTOR_BYTES = 16  # of no other processor that code is generated for
LIMITS: Mapping[str, tuple[int, str]] = {  # variable -> its largest value, and the message if it is smaller
    "vector_bytes": (64, "has no AVX-512"),
    "vector_registers": (32, "has no AVX-512"),
    "compute_capability": (ANY_CAPABILITY, "is too old"),
}


@dataclass(frozen=True)
class EmptySpace:
    """A strategy without a feasible configuration, with the first constraint after which none is left.

    ``hardware``: the property of the machine without which the constraints could be met.
    """

    space: SearchSpace
    constraint: Expression
    hardware: str  # "has no AMX", "has AMX", "is too old"; "" where other hardware would make no difference

    @classmethod
    def of(cls, space: SearchSpace) -> "EmptySpace":
        """Returns why ``space`` has no feasible configuration.

        Raises ValueError if it has one, and UsageError if the enumeration would take too long.
        """
        for count, constraint in enumerate(space.constraints, start=1):
            checked = space.constraints[:count]
            if not enumeration.is_possible(space, checked):
                return cls(space, constraint, _hardware(space, checked))
        raise ValueError(f"strategy {space.strategy!r} has configurations")

    @property
    def processor(self) -> str:
        """Returns "GPU" if the strategy's variables are those of a GPU, else "processor"."""
        if "compute_capability" in dict(self.space.variables):
            return "GPU"
        return "processor"

    def note(self, machine: str = "") -> str:
        """Returns a line that says why the strategy is not tried.

        ``machine``: its name in the line; "": "this processor" or "this GPU".
        """
        if self.hardware:
            return f"{machine or f'this {self.processor}'} {self.hardware}: {self.space.strategy} not tried"
        return self._line

    @property
    def error(self) -> str:
        """Returns the error message if no strategy is left: the constraint's place in the file, and why."""
        if self.hardware:
            return f"{self.constraint.where}: {self.space.strategy}: the {self.processor} {self.hardware}"
        return f"{self.constraint.where}: {self._line}"

    @property
    def _line(self) -> str:
        space = self.space
        text = self.constraint.text
        why = ", as it divides by zero" if _is_undefined(space, self.constraint) else ""
        return f"{text!r} leaves none of the {space.cartesian} combinations of strategy {space.strategy}{why}"


def _hardware(space: SearchSpace, checked: tuple[Expression, ...]) -> str:
    """Returns the property of the hardware because of which the last of ``checked`` cannot hold; or ""."""
    variables = dict(space.variables)
    named = [name for name in checked[-1].names if name in variables]
    changes: dict[str, dict[str, Value]] = {}  # "has no AMX" -> the variables of a machine with it
    flags = FLAGS
    limits = LIMITS
    if variables.get("vector_bytes") == AARCH64_VECTOR_BYTES:
        flags = AARCH64_FLAGS
        limits = {}  # no AArch64 has AVX-512
    for name in flags.keys() & named:
        has = "has" if variables[name] else "has no"
        changes.setdefault(f"{has} {flags[name]}", {})[name] = int(not variables[name])
    for name in limits.keys() & named:
        largest, what = limits[name]
        if variables[name] != largest:
            changes.setdefault(what, {})[name] = largest
    for what in sorted(changes):
        changed = replace(space, variables=tuple({**variables, **changes[what]}.items()))
        if enumeration.is_possible(changed, checked):
            return what
    return ""


def _is_undefined(space: SearchSpace, constraint: Expression) -> bool:
    drawn = enumeration.cartesian_sample(space, UNDEFINED_SAMPLE, np.random.default_rng(SAMPLE_SEED))
    values = {
        knob.name: np.array(knob.choices)[picks] for knob, picks in zip(space.knobs, drawn.T, strict=True)
    }
    return bool(np.all(constraint.undefined({**dict(space.variables), **values})))
