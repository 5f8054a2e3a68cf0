"""The modifiers of an opcode; decoders consume these one by one, and a remaining modifier is unsupported."""

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
    """The modifiers of an opcode that are not consumed yet."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.parts[1:])

    def take(self, *names: str) -> str | None:
        """Consumes and returns the first of ``names`` that is present; None where none is present."""
        for name in names:
            if name in self._left:
                self._left.remove(name)
                return name
        return None

    def has(self, *names: str) -> bool:
        """Consumes all of ``names`` that are present; returns whether any was present."""
        taken = [self.take(name) for name in names]
        return any(taken)

    def need(self, names: Iterable[str], what: str) -> str:
        """Consumes and returns one of ``names``; ``what`` describes the modifier in the error.

        Raises UnsupportedInstruction where none is present.
        """
        found = self.take(*names)
        if found is None:
            raise unsupported(self._instruction, f"it without {what}: {', '.join(names)}")
        return found

    def type(self, *allowed: str) -> PtxType:
        """Consumes the last modifier, which must be a type, and one of ``allowed`` if given.

        Raises UnsupportedInstruction for another modifier.
        """
        if not self._left or self._left[-1] not in TYPES:
            raise unsupported(self._instruction, f".{self._left[-1]}" if self._left else "it without a type")
        name = self._left.pop()
        if allowed and name not in allowed:
            raise unsupported(self._instruction, f".{name}, only {', '.join(allowed)}")
        return TYPES[name]

    def vector(self) -> int:
        """Consumes .v2, .v4 or .v8; returns the number of elements, 1 by default."""
        return int((self.take("v2", "v4", "v8") or "v1")[1:])

    def space(self) -> str:
        """Consumes a state space and returns its name; "generic" where none is given, "global" for .const."""
        for name in ("global", "shared", "local", "param", "const"):
            if self.has(name, f"{name}::cta", f"{name}::cluster", f"{name}::entry"):
                return "global" if name == "const" else name
        return "generic"

    def take_memory_order(self) -> bool:
        """Consumes ordering, scope and cache modifiers; returns whether the operation is strong."""
        is_strong = self.has("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
        is_weak = self.has("weak")
        self.has(*SCOPES)
        self.has(*CACHES)
        self.has(*HINTS)
        return is_strong and not is_weak

    def finish(self) -> None:
        """Raises UnsupportedInstruction where a modifier was not consumed."""
        if self._left:
            raise self.unknown(f".{self._left[0]}")

    def unknown(self, construct: str) -> UnsupportedInstruction:
        """Returns the error for a construct that is not simulated."""
        return unsupported(self._instruction, construct)
