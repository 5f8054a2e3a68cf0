"""The words of an opcode after the first, taken one by one: what nobody takes is not supported."""

from collections.abc import Iterable

from tuner.ptx.defects import UnsupportedInstruction, unsupported
from tuner.ptx.dtypes import TYPES, PtxType
from tuner.ptx.instruction import Instruction

# How far an operation is visible, and which caches it uses: no difference here, where memory is one.
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
HINTS = (
    *("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"),
    *("L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::64B", "L2::128B", "L2::256B"),
)


class Modifiers:
    """The words of one opcode that are not yet understood."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.parts[1:])

    def take(self, *names: str) -> str | None:
        """Takes one of these words where it is there."""
        for name in names:
            if name in self._left:
                self._left.remove(name)
                return name
        return None

    def has(self, *names: str) -> bool:
        """Takes all of these words that are there; tells whether there was one."""
        taken = [self.take(name) for name in names]
        return any(taken)

    def need(self, names: Iterable[str], what: str) -> str:
        """Takes one of these words. Raises UnsupportedInstruction where none is there."""
        found = self.take(*names)
        if found is None:
            raise unsupported(self._instruction, f"it without {what}: {', '.join(names)}")
        return found

    def type(self, *allowed: str) -> PtxType:
        """Takes the last word as a type, one of ``allowed`` where they are given."""
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
        """Takes ordering, scope and cache words; tells whether the access is a strong one."""
        is_strong = self.has("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
        is_weak = self.has("weak")
        self.has(*SCOPES)
        self.has(*CACHES)
        self.has(*HINTS)
        return is_strong and not is_weak

    def finish(self) -> None:
        """Raises UnsupportedInstruction when a word is left."""
        if self._left:
            raise self.unknown(f".{self._left[0]}")

    def unknown(self, construct: str) -> UnsupportedInstruction:
        """Returns the error of something that is not known."""
        return unsupported(self._instruction, construct)
