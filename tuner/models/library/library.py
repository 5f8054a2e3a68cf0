"""Libraries of exported schedules: the module for a version of MLIR, the formats of files, and merging.

``write_library`` makes the file of one export: a header and a transform module (``transform_module``), with
how much longer each entry of this machine takes in the library. ``merged`` joins several files, and times
entries that both have.
"""

import itertools
import re
from dataclasses import dataclass, replace

from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.dtypes import CPU_DTYPES
from tuner.core.errors import Refusal, UsageError
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.models.library.entries import LibraryEntries, LibraryEntry, LibraryFile
from tuner.models.library.format_names import MLIR_22, MLIR_23
from tuner.models.library.header import (
    document_of,
    entry_name,
    header,
    read_document,
    read_entries,
    slowdown_text,
)
from tuner.models.library.script_comparison import OutliningCost, outlining_cost, slower_by
from tuner.models.library.transform_module import EntrySchedule, transform_module
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.header import custom_ops
from tuner.space.scripts.matchers import AMBIGUOUS, contractions_of
from tuner.space.scripts.script_halves import ScriptHalves, halves_of

# x86vector of MLIR 22 is x86 since MLIR 23. Scripts are bound with the names of MLIR 23.
NEWER = "transform.apply_patterns.x86."
OLDER = "transform.apply_patterns.x86vector."
MADE_FOR = re.compile(r"^(// made by   .*, for )\S.*$", re.MULTILINE)  # in the header of a library
FILE = "library.mlir"


def for_version(version: str, file: LibraryFile) -> LibraryFile:
    """Returns a file; if it is MLIR, with the dialect names of ``version``, one of VERSIONS."""
    if not file.name.endswith(".mlir"):
        return file
    text = file.content.decode()
    text = text.replace(NEWER, OLDER) if version == MLIR_22 else text.replace(OLDER, NEWER)
    text = MADE_FOR.sub(lambda line: line[1] + versions_text(text), text)
    return replace(file, content=text.encode())


def versions_text(text: str) -> str:
    """Returns which versions of MLIR read a module: "mlir-22", "mlir-23" or "mlir-22 and mlir-23"."""
    if OLDER in text:
        return MLIR_22
    if NEWER in text:
        return MLIR_23
    return f"{MLIR_22} and {MLIR_23}"


def write_library(entries: tuple[LibraryEntry, ...]) -> tuple[LibraryFile, ...]:
    """Returns the file of a library; an entry of this machine is timed in the library and alone.

    Raises UsageError for an entry that no library can have, TunerError if timing fails.
    """
    schedules = tuple(map(schedule_of, entries))
    here = describe_machine().name
    costs: list[OutliningCost | None] = []
    for entry, schedule in zip(entries, schedules, strict=True):
        cost = None
        if entry.machine.name == here:
            cost = outlining_cost(entry.problem, entry.script, transform_module((schedule,)))
        costs.append(cost)
    return (LibraryFile(FILE, library_text(entries, tuple(costs)).encode()),)


def suitable(entries: LibraryEntries) -> LibraryEntries:
    """Returns the entries that a library can have, with a note for each entry that it cannot.

    Raises UsageError, with the first reason, if no entry is left.
    """
    kept: list[LibraryEntry] = []
    reasons: list[str] = []
    for entry in entries.entries:
        try:
            schedule_of(entry)
        except UsageError as error:
            reasons.append(error.message)
        else:
            kept.append(entry)
    if not kept:
        raise UsageError(reasons[0])
    notes = (f"left out: {reason}" for reason in reasons)
    return LibraryEntries(tuple(kept), (*entries.notes, *notes))


def library_text(entries: tuple[LibraryEntry, ...], costs: tuple[OutliningCost | None, ...] = ()) -> str:
    """Returns the text of a library: its header, and the transform module of all entries.

    ``costs``: how much longer each entry takes in the library, None where unknown. Raises UsageError for an
    entry that no library can have.
    """
    module = transform_module(tuple(map(schedule_of, entries)))
    document = document_of(entries, costs or (None,) * len(entries))
    return header(document, FILE, versions_text(module)) + module


def schedule_of(entry: LibraryEntry) -> EntrySchedule:
    """Returns an entry's schedule as a library's module needs it: name, contractions and script halves.

    Raises UsageError, with the reason, for an entry that no library can have.
    """
    halves = _why_not(entry) or halves_of(entry.script, entry.problem)
    if not isinstance(halves, ScriptHalves):
        raise UsageError(f"{entry.problem.key}: trial {entry.trial}: {halves.text}")
    return EntrySchedule(entry_name(entry.problem), contractions_of(entry.problem), halves)


def _why_not(entry: LibraryEntry) -> Refusal | None:
    problem = entry.problem
    ops = custom_ops(entry.script)
    if ops:
        called = ", ".join(ops)
        return Refusal(f"its script calls tuner's transform ops ({called}), which other compilers lack")
    if problem.after_product.steps:
        return Refusal(f"no matcher sees what an epilogue computes ({problem.epilogue})")
    if problem.dtype not in CPU_DTYPES or problem.dtype in AMBIGUOUS:
        return Refusal(f"no matcher tells {problem.dtype} from other types of as many bits")
    if not contractions_of(problem):
        return Refusal(f"batches are recognized in layout nn only, not {problem.layout}")
    return None


# Merges libraries: of two schedules of one contraction, the faster stays.


@dataclass(frozen=True)
class LibraryText:
    """A library's MLIR text, and its name for messages."""

    name: str
    text: str


@dataclass(frozen=True)
class ScheduleComparison:
    """Two schedules of one contraction that were timed interleaved, and which one is kept."""

    problem: Problem
    kept: str  # name of the library
    left: str
    slowdown: PairedSlowdown  # of what is left out, against what stays

    @property
    def line(self) -> str:
        """Returns one line: the library whose schedule is kept, and how much longer the other takes."""
        return f"{self.problem.key}: from {self.kept}; that of {self.left}: {slowdown_text(self.slowdown)}"


@dataclass(frozen=True)
class MergedLibrary:
    """The text of a merged library, the number of its entries, and what was timed to make it."""

    text: str
    entries: int
    duels: tuple[ScheduleComparison, ...]


@dataclass(frozen=True)
class _Known:
    """An entry of a library, the slowdown that the library's form costs it, and the library's name."""

    entry: LibraryEntry
    cost: OutliningCost | None
    library: str


def merged(libraries: tuple[LibraryText, ...]) -> MergedLibrary:
    """Merges libraries of one machine; of two schedules of one contraction, the faster one is kept.

    Both are timed interleaved if their scripts differ. Raises UsageError for libraries of several machines,
    and for schedules to compare of another machine than this; TunerError if timing fails.
    """
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
    kept = sorted(best.values(), key=lambda known: known.entry.problem.key)
    text = library_text(tuple(known.entry for known in kept), tuple(known.cost for known in kept))
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
