"""Kinds of defects of a host program that the simulated GPU finds, and the log that collects them."""

import enum
from dataclasses import dataclass


class HostDefect(enum.Enum):
    """A kind of defect in a host program's use of a GPU: a race, a leak, a use after free and others."""

    RACE = "race"  # two unordered accesses to the same bytes, at least one a write
    MISSING_FORK = "missing fork"  # work that may run before the call begins
    MISSING_JOIN = "missing join"  # work that may run after what follows the call on its stream
    UNFINISHED = "unfinished"  # work that may run after the call has returned
    USE_AFTER_FREE = "use after free"
    DOUBLE_FREE = "double free"
    LEAK = "leak"
    UNWRITTEN = "never written"  # a read of memory that was never written
    OUT_OF_BOUNDS = "out of bounds"
    NEVER_RECORDED = "event never recorded"  # a wait for the event orders nothing
    KERNEL = "kernel"  # a race or an undefined read inside of a kernel


@dataclass(frozen=True)
class HostReport:
    """A defect of a host program: kind, description, and the number of times that it was found."""

    kind: HostDefect
    text: str  # the operation and the memory, in plain text
    count: int

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind.value}: {self.text}{times}"


class DefectLog:
    """A log of the defects of a host program; a defect that is found again is counted, not stored again."""

    def __init__(self) -> None:
        self._found: dict[tuple[HostDefect, str], int] = {}

    def add(self, kind: HostDefect, text: str) -> None:
        """Adds a defect, or counts it if one of the same kind and text was added before."""
        self._found[kind, text] = self._found.get((kind, text), 0) + 1

    def reports(self) -> tuple[HostReport, ...]:
        """Returns the distinct defects with their counts, in the order in which each was first found."""
        return tuple(HostReport(kind, text, count) for (kind, text), count in self._found.items())
