"""Defects of a host program that the simulated GPU finds, and the log of them."""

import enum
from dataclasses import dataclass


class HostDefect(enum.Enum):
    """A kind of mistake in what the host asks of a device."""

    RACE = "race"  # two accesses, one of them a write, that nothing orders
    MISSING_FORK = "missing fork"  # work that may run before the call begins
    MISSING_JOIN = "missing join"  # work that may run after what follows the call on its stream
    UNFINISHED = "unfinished"  # work that may run after the call has returned
    USE_AFTER_FREE = "use after free"
    DOUBLE_FREE = "double free"
    LEAK = "leak"
    UNWRITTEN = "never written"  # a read of memory that nothing was ever put into
    OUT_OF_BOUNDS = "out of bounds"
    NEVER_RECORDED = "event never recorded"  # a wait for it orders nothing
    KERNEL = "kernel"  # a race or an undefined read inside of a kernel


@dataclass(frozen=True)
class HostReport:
    """One defect and how many times it was found."""

    kind: HostDefect
    text: str  # what was done to which memory
    count: int

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.kind.value}: {self.text}{times}"


class DefectLog:
    """The defects found so far; equal ones are counted."""

    def __init__(self) -> None:
        self._found: dict[tuple[HostDefect, str], int] = {}

    def add(self, kind: HostDefect, text: str) -> None:
        """Adds a defect."""
        self._found[kind, text] = self._found.get((kind, text), 0) + 1

    def reports(self) -> tuple[HostReport, ...]:
        """Returns the defects in the order in which each was first found."""
        return tuple(HostReport(kind, text, count) for (kind, text), count in self._found.items())
