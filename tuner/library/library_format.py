"""``--format library``: one transform module that gives each contraction of a program its schedule."""

from tuner.core.errors import UsageError
from tuner.library.entry import LibraryEntry, LibraryFile
from tuner.library.library_document import document_of, entry_name, header
from tuner.library.mlir_versions import versions_text
from tuner.library.outlining_cost import OutliningCost, outlining_cost
from tuner.library.transform_module import EntrySchedule, transform_module
from tuner.scripts.matchers import AMBIGUOUS, BODIES, contractions_of
from tuner.scripts.portability import custom_ops
from tuner.scripts.script_halves import ScriptHalves, halves_of

FILE = "library.mlir"


def write_library(entries: tuple[LibraryEntry, ...]) -> tuple[LibraryFile, ...]:
    """Returns the file of a library, with the measured cost of each entry in its header.

    The cost is measured where this is the machine that the entries were tuned on, which takes some seconds
    for each. Raises UsageError for an entry that no library can have, and TunerError where one fails.
    """
    schedules = tuple(map(schedule_of, entries))
    costs = tuple(_cost(entry, schedule) for entry, schedule in zip(entries, schedules, strict=True))
    return (LibraryFile(FILE, library_text(entries, costs).encode()),)


def library_text(entries: tuple[LibraryEntry, ...], costs: tuple[OutliningCost | None, ...] = ()) -> str:
    """Returns the text of a library: its header, and the transform module of all entries."""
    module = transform_module(tuple(map(schedule_of, entries)))
    document = document_of(entries, costs or (None,) * len(entries))
    return header(document, FILE, versions_text(module)) + module


def schedule_of(entry: LibraryEntry) -> EntrySchedule:
    """Returns an entry's schedule. Raises UsageError, with the reason, where no library can have it."""
    halves = _why_not(entry) or halves_of(entry.script)
    if not isinstance(halves, ScriptHalves):
        raise UsageError(f"library: {entry.problem.key}: trial {entry.trial}: {halves}")
    return EntrySchedule(entry_name(entry.problem), contractions_of(entry.problem), halves)


def _why_not(entry: LibraryEntry) -> str:
    """Returns why an entry's problem or script cannot be in a library; "" where it can."""
    problem, ops = entry.problem, custom_ops(entry.script)
    if ops:
        return f"its script calls tuner's transform ops ({', '.join(ops)}), which other compilers lack"
    if problem.epilogue != "none":
        return f"no matcher sees what an epilogue computes ({problem.epilogue})"
    if problem.dtype not in BODIES or problem.dtype in AMBIGUOUS:
        return f"no matcher tells {problem.dtype} from other types of as many bits"
    if not contractions_of(problem):
        return f"batches are recognized in layout nn only, not {problem.layout}"
    return ""


def _cost(entry: LibraryEntry, schedule: EntrySchedule) -> OutliningCost | None:
    from tuner.runtime.cpu.describe_host import describe_machine

    if describe_machine().name != entry.machine.name:
        return None
    return outlining_cost(entry.problem, entry.script, transform_module((schedule,)))
