"""Libraries of one machine merged: of two schedules for the same contraction the faster one stays."""

from dataclasses import dataclass, replace

from tuner.analysis.paired_slowdown import PairedSlowdown
from tuner.core.errors import UsageError
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.library.entry import LibraryEntry
from tuner.library.library_document import read_document, read_entries, slowdown_text
from tuner.library.library_format import library_text
from tuner.library.outlining_cost import OutliningCost
from tuner.library.paired_scripts import slower_by


@dataclass(frozen=True)
class LibraryText:
    """A library's text, and its name for messages."""

    name: str
    text: str


@dataclass(frozen=True)
class Duel:
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
    duels: tuple[Duel, ...]


@dataclass(frozen=True)
class _Known:
    """An entry with its cost, and the library that it is from."""

    entry: LibraryEntry
    cost: OutliningCost | None
    library: str


def merged(libraries: tuple[LibraryText, ...]) -> MergedLibrary:
    """Returns the library that has the entries of several libraries of one machine.

    Where several have a schedule for the same contraction, these are timed interleaved on this machine, and
    the one with the shorter median stays. Equal scripts are not timed. Raises UsageError for a text that is
    no library, for libraries of several machines, and where a timing is needed on another machine than this
    one; TunerError where a schedule fails.
    """
    found: dict[Problem, _Known] = {}
    duels: list[Duel] = []
    for known in (one for library in libraries for one in _entries(library)):
        _require_machine(known, next(iter(found.values()), known))
        key = replace(known.entry.problem, align=NUMPY_ALIGNMENT, cache=WARM)
        before = found.setdefault(key, known)
        if before.entry.script != known.entry.script:
            found[key], duel = _faster(before, known)
            duels.append(duel)
    kept = sorted(found.values(), key=lambda one: one.entry.problem.key)
    text = library_text(tuple(one.entry for one in kept), tuple(one.cost for one in kept))
    return MergedLibrary(text, len(kept), tuple(duels))


def _entries(library: LibraryText) -> tuple[_Known, ...]:
    document = read_document(library.text, library.name)
    entries = read_entries(library.text, library.name)
    costs = (entry.cost for entry in document.entries)
    return tuple(_Known(entry, cost, library.name) for entry, cost in zip(entries, costs, strict=True))


def _require_machine(known: _Known, first: _Known) -> None:
    if known.entry.machine.name != first.entry.machine.name:
        names = f"{first.entry.machine.name!r} and {known.library} of {known.entry.machine.name!r}"
        raise UsageError(f"{first.library} is of {names}: a library is of one machine")


def _faster(first: _Known, second: _Known) -> tuple[_Known, Duel]:
    """Returns the faster of two schedules of one contraction, and how much longer the other one takes."""
    from tuner.runtime.cpu.describe_host import describe_machine

    problem = first.entry.problem
    if describe_machine().name != first.entry.machine.name:
        where = f"only {first.entry.machine.name!r} can compare them"
        raise UsageError(f"{problem.key}: several libraries have a schedule; {where}")
    longer = slower_by(problem, second.entry.script, first.entry.script)
    if longer.median < 0:
        low, high = longer.interval
        turned = (1 / (1 + high) - 1, 1 / (1 + low) - 1)
        inverse = PairedSlowdown(1 / (1 + longer.median) - 1, turned, longer.noise)
        return second, Duel(problem, second.library, first.library, inverse)
    return first, Duel(problem, first.library, second.library, longer)
