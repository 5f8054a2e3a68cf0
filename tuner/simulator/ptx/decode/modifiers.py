"""The modifiers of an opcode; decoders consume them one by one, and a remaining modifier is unsupported."""

from collections.abc import Iterable

from tuner.simulator.ptx.defects import UnsupportedInstruction, unsupported
from tuner.simulator.ptx.dtypes import TYPES, PtxType
from tuner.simulator.ptx.instruction import Instruction

# Scopes and cache operators, which have no effect: the simulated memory is coherent.
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
HINTS = (
    *("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"),
    *("L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::64B", "L2::128B", "L2::256B"),
)


class Modifiers:
    """The modifiers of an opcode, such as ``global`` and ``f32`` of ld.global.f32, that are not consumed yet.

    A decoder consumes the modifiers that it knows; ``finish`` rejects the rest.
    """

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.parts[1:])

    def take(self, *names: str) -> str | None:
        """Consumes and returns the first of ``names`` that the opcode still has; None where it has none."""
        for name in names:
            if name in self._left:
                self._left.remove(name)
                return name
        return None

    def has(self, *names: str) -> bool:
        """Consumes every modifier of ``names`` that the opcode still has; returns whether there was any."""
        taken = [self.take(name) for name in names]
        return any(taken)

    def need(self, names: Iterable[str], what: str) -> str:
        """Consumes and returns the first of ``names`` that the opcode still has.

        Raises UnsupportedInstruction where it has none of them; ``what`` names the missing modifier in the
        message, for example "a rounding".
        """
        found = self.take(*names)
        if found is None:
            raise unsupported(self._instruction, f"it without {what}: {', '.join(names)}")
        return found

    def type(self, *allowed: str) -> PtxType:
        """Consumes the last modifier, which must be a type such as ``f32``, and returns the type.

        Raises UnsupportedInstruction where the last modifier is no type, or not one of ``allowed`` (empty:
        any type).
        """
        if not self._left or self._left[-1] not in TYPES:
            raise unsupported(self._instruction, f".{self._left[-1]}" if self._left else "it without a type")
        name = self._left.pop()
        if allowed and name not in allowed:
            raise unsupported(self._instruction, f".{name}, only {', '.join(allowed)}")
        return TYPES[name]

    def vector(self) -> int:
        """Consumes .v2, .v4 or .v8, if present; returns the vector's number of elements, by default 1."""
        return int((self.take("v2", "v4", "v8") or "v1")[1:])

    def space(self) -> str:
        """Consumes the state space, such as .shared or .shared::cta, and returns its name, here "shared".

        Returns "generic" where no state space is given, and "global" for .const, as constants are in global
        memory.
        """
        for name in ("global", "shared", "local", "param", "const"):
            if self.has(name, f"{name}::cta", f"{name}::cluster", f"{name}::entry"):
                return "global" if name == "const" else name
        return "generic"

    def take_memory_order(self) -> bool:
        """Consumes ordering, scope and cache modifiers; returns whether the operation is strong.

        Strong: .volatile, .relaxed, .acquire, .release, .acq_rel or .mmio. PTX ISA, "Memory Consistency
        Model".
        """
        is_strong = self.has("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
        is_weak = self.has("weak")
        self.has(*SCOPES)
        self.has(*CACHES)
        self.has(*HINTS)
        return is_strong and not is_weak

    def finish(self) -> None:
        """Raises UnsupportedInstruction where a modifier of the opcode was not consumed."""
        if self._left:
            raise self.unknown(f".{self._left[0]}")

    def unknown(self, construct: str) -> UnsupportedInstruction:
        """Returns, without raising, the UnsupportedInstruction whose message names ``construct``, a text."""
        return unsupported(self._instruction, construct)
