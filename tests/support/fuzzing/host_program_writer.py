"""The text of a random host program while it is generated: its memrefs, and a source of random choices."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

ROWS, COLUMNS = 4, 4
PLAIN, DYNAMIC = f"memref<{ROWS}x{COLUMNS}xf32>", f"memref<?x{COLUMNS}xf32>"


@dataclass(frozen=True)
class ProgramFeatures:
    """Optional contents of programs, beyond allocations, copies, stores, loads, kernels, control flow."""

    globals: bool = True
    calls: bool = True
    swaps: bool = True  # loops that hand on two buffers crosswise, branches that choose one
    repeated_results: bool = True  # a result is an argument, or another result
    explicit: bool = False  # some memory is of gpu.alloc, host_shared or not, some is left to us to free


@dataclass(frozen=True)
class MemrefVariable:
    """A memref in scope."""

    name: str
    type: str
    root: str  # what it is part of, or may be: "%a|%b"
    rows: int = ROWS
    columns: int = COLUMNS
    pitch: int | None = COLUMNS  # None where the type does not say
    offset: int = 0
    place: tuple[int, int] = (0, 0)  # row and column of its root that it begins at
    is_writable: bool = True

    def may_share(self, other: "MemrefVariable") -> bool:
        """Returns whether both memrefs may alias: then no kernel reads one and writes the other."""
        if not set(self.root.split("|")) & set(other.root.split("|")):
            return False
        sizes = ((self.rows, self.columns), (other.rows, other.columns))
        places = zip(self.place, other.place, *sizes, strict=True)
        meet = all(first < second + more and second < first + size for first, second, size, more in places)
        return meet or "|" in self.root + other.root


@dataclass
class ProgramWriter:
    """The text so far, and a source of random choices."""

    draw: Any
    features: ProgramFeatures
    lines: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    on_device: set[str] = field(default_factory=set)  # allocations by gpu.alloc
    shared: set[str] = field(default_factory=set)  # those of them that the host reaches too
    count: int = 0
    indent: int = 2

    def name(self) -> str:
        """Returns a new name of a value."""
        self.count += 1
        return f"%v{self.count}"

    def add(self, line: str) -> None:
        """Writes a line."""
        self.lines.append("  " * self.indent + line)

    def choose(self, choices: list[Any]) -> Any:
        """Draws one of the choices."""
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        """Draws a number, both ends included."""
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        """Draws yes or no."""
        return bool(self.draw(st.booleans()))

    def write(self, variable: MemrefVariable) -> None:
        """Records that the memory of a memref may be written."""
        self.written.update(variable.root.split("|"))
