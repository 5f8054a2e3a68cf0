"""The modifiers of an opcode, taken one by one by its decoder; one that is left is not supported."""

from collections.abc import Iterable

from tuner.simulator.ptx.defects import UnsupportedInstruction, unsupported
from tuner.simulator.ptx.dtypes import TYPES, PtxType
from tuner.simulator.ptx.instruction import Instruction

# Scopes and cache operators, which make no difference to one coherent memory.
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
HINTS = (
    *("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"),
    *("L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::64B", "L2::128B", "L2::256B"),
)


class Modifiers:
    """The modifiers of one opcode that are not taken yet."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.parts[1:])

    def take(self, *names: str) -> str | None:
        """Takes the first of these modifiers that is there; None where none is."""
        for name in names:
            if name in self._left:
                self._left.remove(name)
                return name
        return None

    def has(self, *names: str) -> bool:
        """Takes all of these modifiers that are there; tells whether one was."""
        taken = [self.take(name) for name in names]
        return any(taken)

    def need(self, names: Iterable[str], what: str) -> str:
        """Takes one of these modifiers. Raises UnsupportedInstruction where none is there."""
        found = self.take(*names)
        if found is None:
            raise unsupported(self._instruction, f"it without {what}: {', '.join(names)}")
        return found

    def type(self, *allowed: str) -> PtxType:
        """Takes the last modifier, which must be a type, one of ``allowed`` if given."""
        if not self._left or self._left[-1] not in TYPES:
            raise unsupported(self._instruction, f".{self._left[-1]}" if self._left else "it without a type")
        name = self._left.pop()
        if allowed and name not in allowed:
            raise unsupported(self._instruction, f".{name}, only {', '.join(allowed)}")
        return TYPES[name]

    def vector(self) -> int:
        """Takes .v2, .v4 or .v8; returns the number of elements."""
        return int((self.take("v2", "v4", "v8") or "v1")[1:])

    def space(self) -> str:
        """Takes a state space; generic where there is none."""
        for name in ("global", "shared", "local", "param", "const"):
            if self.has(name, f"{name}::cta", f"{name}::cluster", f"{name}::entry"):
                return "global" if name == "const" else name
        return "generic"

    def take_memory_order(self) -> bool:
        """Takes ordering, scope and cache modifiers; tells whether the operation is strong."""
        is_strong = self.has("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
        is_weak = self.has("weak")
        self.has(*SCOPES)
        self.has(*CACHES)
        self.has(*HINTS)
        return is_strong and not is_weak

    def finish(self) -> None:
        """Raises UnsupportedInstruction where a modifier is left."""
        if self._left:
            raise self.unknown(f".{self._left[0]}")

    def unknown(self, construct: str) -> UnsupportedInstruction:
        """Returns the error for a construct that is not simulated."""
        return unsupported(self._instruction, construct)
