"""A plain ``.mlir`` schedule as a strategy: knobs are read from the IR, a candidate is written into the IR.

A knob is a ``transform.tune.knob``, or the choice of a region of ``transform.tune.alternatives``; ops of the
same name are one knob. A knob whose value the script selects already has this one choice.
"""

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.mlir import interpreter
from tuner.mlir.bindings import ir
from tuner.payload.cpu import PARTITIONS_COMMENT
from tuner.scripts.schedule import knob_ops, smt_constraints
from tuner.scripts.schedule.knob_ops import TunableOp
from tuner.space.expression import LENGTH_LIMIT, Expression, parse
from tuner.space.search_space import Knob


class Schedule:
    """A plain MLIR transform script with knobs, parsed once; binding a candidate takes under 1 ms."""

    def __init__(self, text: str, name: str = "script") -> None:
        """Parses the text; ``name`` is used in messages.

        Raises UsageError with MLIR's first error, and for invalid options of a knob or invalid constraints.
        """
        self._partitions = "".join(
            f"{line}\n" for line in text.splitlines() if line.startswith(PARTITIONS_COMMENT)
        )
        self._context = interpreter.new_context()
        with self._context, ir.Location.unknown():
            try:
                self._module = interpreter.parse(text, name)
            except CandidateError as error:
                raise UsageError(error.reason) from error
            self._tunable_ops = knob_ops.read_tunable_ops(self._module.operation, name)
            self.knobs = knob_ops.knobs_of(self._tunable_ops)
            self._constrained = smt_constraints.read_constraints(self._module.operation, self.knobs, name)

    @property
    def constraints(self) -> tuple[Expression, ...]:
        """Returns the constraints over knobs that the script's ``transform.smt`` assertions state."""
        return tuple(each for op in self._constrained for each in op.assertions)

    @property
    def idle(self) -> tuple[Expression, ...]:
        """Returns constraints that keep a knob at its first choice where no op that runs uses the knob.

        Without these constraints, candidates would differ only in knobs without effect. A knob has none where
        its name cannot be used in expressions, or where the constraint would exceed 1000 characters.
        """
        texts = ((knob, _runs_or_first(knob, self._tunable_ops)) for knob in self.knobs)
        return tuple(
            parse(text, f"knob {knob.name}") for knob, text in texts if text and len(text) <= LENGTH_LIMIT
        )

    def select(self, candidate: Candidate) -> str:
        """Returns the script's text with a candidate's knob values filled in.

        Raises CandidateError(BIND) for a missing, unknown or illegal value, or a violated constraint.
        """
        values = dict(candidate.choices)
        self._require(values)
        with self._context, ir.Location.unknown():
            bound = self._module.operation.clone()
            root = bound.operation
            for tunable, op in zip(self._tunable_ops, knob_ops.tunable_ops_in(root), strict=True):
                op.attributes[tunable.attribute] = tunable.option(values[tunable.name])
            smt_constraints.fold(root, self._constrained, values)
            return f"{self._partitions}{root}"

    def _require(self, values: dict[str, Value]) -> None:
        for knob in self.knobs:
            if values.get(knob.name) not in knob.choices:
                allowed = ", ".join(str(choice) for choice in knob.choices[:20])
                is_given = knob.name in values
                found = f"found {values[knob.name]!r}" if is_given else "its value is missing"
                raise CandidateError(Stage.BIND, f"knob {knob.name!r}: {found}, allowed {allowed}")
        known = [knob.name for knob in self.knobs]
        for name in values:
            if name not in known:
                allowed = ", ".join(known) or "none: the script has no knobs"
                raise CandidateError(Stage.BIND, f"knob: found {name!r}, allowed {allowed}")
        for each in self.constraints:
            if not each.evaluate(values):
                raise CandidateError(Stage.BIND, f"{each.where}: {each.text!r} does not hold")


def _runs_or_first(knob: Knob, tunable_ops: tuple[TunableOp, ...]) -> str | None:
    """Returns the constraint of ``idle`` for a knob; None for a knob always in use, or with one choice."""
    uses = [tunable.conditions for tunable in tunable_ops if tunable.name == knob.name]
    if len(knob.choices) == 1 or not all(uses) or not knob_ops.is_word(knob.name):
        return None
    runs = " or ".join(
        f"({' and '.join(each)})" if len(each) > 1 else each[0] for each in dict.fromkeys(uses)
    )
    return f"{runs} or {knob.name} == {knob.choices[0]!r}"
