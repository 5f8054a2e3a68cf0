"""The format "iree": a tuning spec for IREE's compiler, of sizes where it wins against IREE's default."""

from tuner.core.errors import TunerError, UsageError
from tuner.core.problem import Problem
from tuner.core.reliability import RELIABLE
from tuner.core.time_text import seconds_text
from tuner.core.version import __version__
from tuner.library.entry import LibraryEntry, LibraryFile
from tuner.library.iree.compiler import OPTIONS, IreeCompiler, find_compiler
from tuner.library.iree.configuration import configurations_for
from tuner.library.iree.contraction import contraction_of, program_of
from tuner.library.iree.selection import Selection, select
from tuner.library.iree.spec import APPLIED, SpecEntry, spec_text

FILE = "tuning_spec.mlir"


def iree_files(entries: tuple[LibraryEntry, ...]) -> tuple[LibraryFile, ...]:
    """Returns the file of a tuning spec. Times configurations here, some 20 s for each problem.

    Problems that IREE's matchers cannot tell apart (equal but for epilogue, type of C, alignment and caches)
    are timed once. Raises UsageError without IREE and for entries of several threads, TunerError where IREE's
    default is the fastest everywhere.
    """
    compiler = find_compiler()
    several = next((entry for entry in entries if entry.threads > 1), None)
    if several is not None:
        raise UsageError(
            f"format iree: trial {several.trial} is of {several.threads} threads, IREE is timed on one",
            "--threads 1",
        )
    of_problem: dict[Problem, LibraryEntry] = {}
    for entry in entries:
        of_problem.setdefault(contraction_of(entry.problem), entry)
    chosen = tuple(
        (select(compiler, problem, configurations_for(entry)), entry) for problem, entry in of_problem.items()
    )
    return (LibraryFile(FILE, tuning_spec(compiler, chosen).encode()),)


def tuning_spec(compiler: IreeCompiler, chosen: tuple[tuple[Selection, LibraryEntry], ...]) -> str:
    """Returns the text of a spec of the selections that win, checked to be used for each of them.

    Raises TunerError where none wins, and for one that IREE does not use in the whole spec.
    """
    won = tuple(
        SpecEntry(selection.problem, selection.configuration, _note(selection, entry))
        for selection, entry in chosen
        if selection.configuration is not None
    )
    left = tuple(selection for selection, _ in chosen if selection.configuration is None)
    if not won:
        reasons = "; ".join(f"{each.problem.key}: {each.reason}" for each in left)
        raise TunerError(f"format iree: nothing is faster than IREE's default: {reasons}")
    text = spec_text(won, _header(compiler, tuple(entry for _, entry in chosen), left))
    for each in won:
        if not compiler.applied(program_of(each.problem), text):
            raise TunerError(f"format iree: IREE does not use the spec for {each.problem.key}")
    return text


def _note(selection: Selection, entry: LibraryEntry) -> str:
    assert selection.compared is not None  # of one that wins
    assert selection.default_s is not None
    default = f"IREE's default takes {seconds_text(selection.default_s)}"
    faster = f"{selection.compared.faster_text}, {RELIABLE.word}"
    return f"{selection.problem.key}: {faster}; {default}; tuner's trial {entry.trial}"


def _header(
    compiler: IreeCompiler, entries: tuple[LibraryEntry, ...], left: tuple[Selection, ...]
) -> tuple[str, ...]:
    machines = sorted({entry.machine.name for entry in entries})
    return (
        f"For IREE's compiler {compiler.version} and no other version. Written by tuner {__version__}.",
        f"iree-compile {' '.join(OPTIONS)} --iree-codegen-tuning-spec-path={FILE} MODEL.mlir -o MODEL.vmfb",
        "Timed in IREE's runtime (local-sync, one thread), interleaved with IREE's default. Schedules of:",
        *(f"  {name}" for name in machines),
        f"An operation that is configured has {APPLIED} (--compile-to=executable-configurations).",
        *(f"left to IREE: {each.problem.key}: {each.reason}" for each in left),
    )
