"""Merges libraries: of two schedules of one contraction, the faster stays."""

import itertools
from dataclasses import dataclass, replace

from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.errors import UsageError
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.library.entries import LibraryEntry
from tuner.library.header import read_document, read_entries, slowdown_text
from tuner.library.library import library_text
from tuner.library.script_comparison import OutliningCost, slower_by
from tuner.runtime.cpu.host import describe_machine


@dataclass(frozen=True)
class LibraryText:
    """A library's MLIR text, and its name for messages."""

    name: str
    text: str


@dataclass(frozen=True)
class ScheduleComparison:
    """Two schedules of one contraction that were timed interleaved, and which one stays."""

    problem: Problem
    kept: str  # name of the library
    left: str
    slowdown: PairedSlowdown  # of what is left out, against what stays

    @property
    def line(self) -> str:
        """Returns one line: what stays, and how much longer the other schedule takes."""
        return f"{self.problem.key}: from {self.kept}; that of {self.left}: {slowdown_text(self.slowdown)}"


@dataclass(frozen=True)
class MergedLibrary:
    """The text of a merged library, the number of its entries, and what was timed to make it."""

    text: str
    entries: int
    duels: tuple[ScheduleComparison, ...]


@dataclass(frozen=True)
class _Known:
    """An entry, its slowdown in the library (cost), and the name of the library that it is from."""

    entry: LibraryEntry
    cost: OutliningCost | None
    library: str


def merged(libraries: tuple[LibraryText, ...]) -> MergedLibrary:
    """Merges libraries; of two entries of one contraction the faster stays. Raises UsageError, TunerError."""
    best: dict[Problem, _Known] = {}
    duels: list[ScheduleComparison] = []
    for known in itertools.chain.from_iterable(map(_entries, libraries)):
        first = next(iter(best.values()), known)
        if known.entry.machine.name != first.entry.machine.name:
            names = f"{first.entry.machine.name!r} and {known.library} of {known.entry.machine.name!r}"
            raise UsageError(f"{first.library} is of {names}: a library is of one machine")
        key = replace(known.entry.problem, align=NUMPY_ALIGNMENT, cache=WARM)
        before = best.setdefault(key, known)
        if before.entry.script != known.entry.script:
            best[key], duel = _faster(before, known)
            duels.append(duel)
    kept = sorted(best.values(), key=lambda one: one.entry.problem.key)
    text = library_text(tuple(one.entry for one in kept), tuple(one.cost for one in kept))
    return MergedLibrary(text, len(kept), tuple(duels))


def _entries(library: LibraryText) -> list[_Known]:
    entries = read_entries(library.text, library.name)
    costs = [entry.cost for entry in read_document(library.text, library.name).entries]
    return [_Known(entry, cost, library.name) for entry, cost in zip(entries, costs, strict=True)]


def _faster(first: _Known, second: _Known) -> tuple[_Known, ScheduleComparison]:
    problem = first.entry.problem
    if describe_machine().name != first.entry.machine.name:
        where = f"only {first.entry.machine.name!r} can compare them"
        raise UsageError(f"{problem.key}: several libraries have a schedule; {where}")
    longer = slower_by(problem, second.entry.script, first.entry.script)
    if longer.median < 0:
        low, high = longer.interval
        interval = (1 / (1 + high) - 1, 1 / (1 + low) - 1)
        inverse = PairedSlowdown(1 / (1 + longer.median) - 1, interval, longer.noise)
        return second, ScheduleComparison(problem, second.library, first.library, inverse)
    return first, ScheduleComparison(problem, first.library, second.library, longer)
