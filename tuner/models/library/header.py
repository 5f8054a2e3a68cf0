"""The header of a library: comment lines about its entries, for people and, in one line, for programs.

A library is the transform module of many schedules that ``tuner export --format library`` writes. Each
schedule is two sequences, @tensors_NAME and @buffers_NAME; the module is bufferized between them.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tuner.analysis.ratios import Comparable, session_comparison
from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.problem_documents import PROBLEM
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability
from tuner.core.serialization import decode, encode, form, known_part, parsed, printable, seconds_text
from tuner.models.library.entries import LibraryEntry
from tuner.models.library.script_comparison import OutliningCost
from tuner.space.scripts.script_halves import BUFFERS_FUNCTION, FUNCTION, MATMUL_OF, ScriptHalves
from tuner.version import __version__

MARK = "// tuner library: "  # the one line of the header that programs read
VERSION = 1
KNOBS = form(dict[str, Value], dict, lambda knobs: tuple(knobs.items()))
HALF = (
    r"  transform\.named_sequence @{half}_{name}\({handle}: .*\n"
    r"(?P<lines>(?:.*\n)*?)    transform\.yield\n"
)


@dataclass(frozen=True, kw_only=True)
class EntryDocument:
    """An entry in a library's header; its script is in the module, as two named sequences."""

    name: str
    problem: Problem = field(metadata=PROBLEM)
    strategy: str
    knobs: tuple[tuple[str, Value], ...] = field(metadata=KNOBS)
    median_s: float | None
    baseline: str
    baseline_s: float | None
    trial: int
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of the time
    # slowdown in the library: of one contraction on tensors, and of a batch; None: not measured, since
    # another machine exported the library
    cost: OutliningCost | None = None


@dataclass(frozen=True, kw_only=True)
class LibraryDocument:
    """The content of a library's header: everything but its schedules."""

    version: int = VERSION
    tuner: str = __version__
    machine: Machine
    entries: tuple[EntryDocument, ...]


def entry_name(problem: Problem) -> str:
    """Returns the identifier of a problem's entry: ``matmul_64x96x33_f32_nn``."""
    return f"{problem.operation}_{problem.shape}_{problem.dtype}_{problem.layout}"


def document_of(
    entries: tuple[LibraryEntry, ...], costs: tuple[OutliningCost | None, ...]
) -> LibraryDocument:
    """Returns the header's content for entries of one machine.

    ``costs``: how much longer each entry takes in the library; None where that was not measured.
    """
    listed = tuple(
        EntryDocument(
            name=entry_name(entry.problem),
            strategy=entry.candidate.strategy,
            knobs=entry.candidate.choices,
            cost=cost,
            **_shared(entry),
        )
        for entry, cost in zip(entries, costs, strict=True)
    )
    return LibraryDocument(machine=entries[0].machine, entries=listed)


def _shared(entry: LibraryEntry | EntryDocument) -> dict[str, Any]:
    names = ("problem", "median_s", "baseline", "baseline_s", "trial", "reliability")
    return {name: getattr(entry, name) for name in names}


def header(document: LibraryDocument, file: str, versions: str) -> str:
    """Returns the header as comment lines.

    ``file``: name of the library's file; ``versions``: text that names the MLIR versions which can read it.
    """
    preload = f"--transform-preload-library=transform-library-paths={file}"
    lines = [
        f"Schedules of {len(document.entries)} problems, in one transform module",
        f"made by   tuner {document.tuner}, for {versions}",
        f"machine   {document.machine.name}",
        f"apply     mlir-opt PAYLOAD {preload} --transform-interpreter",
        f"          tuner apply {file} PAYLOAD --strict   # lists each contraction: its entry, or why none",
        "leaves    buffers: the whole module is bufferized; what no entry takes stays a linalg op",
    ]
    for entry in document.entries:
        line = f"entry     {entry.problem.key}: trial {entry.trial}"
        if entry.median_s is not None:
            line += f", {seconds_text(entry.median_s)} ({entry.reliability.text})"
        if entry.baseline_s is not None:
            line += f"; {entry.baseline}: {seconds_text(entry.baseline_s)}"
        cost = "in the library: not timed: the machine that it was tuned on is not this one"
        if entry.cost is not None:
            named = (("tensors", entry.cost.tensors), ("batch", entry.cost.batch))
            cost = ", ".join(f"{name} {slowdown_text(ratio)}" for name, ratio in named if ratio is not None)
            cost = f"in the library, against its script alone: {cost}"
        lines += [line, f"          {cost}"]
    text = json.dumps(encode(document))
    return "".join(f"// {printable(line)}\n" for line in lines) + f"{MARK}{text}\n"


def is_library(text: str) -> bool:
    """Returns whether an MLIR text has the header of a library."""
    return any(line.startswith(MARK) for line in text.splitlines())


def read_document(text: str, name: str) -> LibraryDocument:
    """Reads the header of a library's text.

    ``name``: of the library, for messages. Raises UsageError if the header is missing or damaged.
    """
    lines = [line for line in text.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        raise UsageError(f"{name}: is not a library that 'tuner export --format library' wrote")
    damaged = f"{name}: its line {MARK.strip()!r} is damaged"
    document = parsed(lines[0].removeprefix(MARK), damaged)
    return decode(LibraryDocument, known_part(LibraryDocument, document, damaged), f"{damaged}: ")


def read_entries(text: str, name: str) -> tuple[LibraryEntry, ...]:
    """Returns a library's entries with their transform scripts, each joined from its two sequences.

    ``name``: of the library, for messages. Raises UsageError if the header is missing or damaged, or a
    schedule is missing.
    """
    document = read_document(text, name)
    return tuple(
        LibraryEntry(
            candidate=Candidate(entry.strategy, entry.knobs),
            script=_script(text, entry.name, entry.problem, name),
            machine=document.machine,
            threads=1,
            **_shared(entry),
        )
        for entry in document.entries
    )


def _script(text: str, entry: str, problem: Problem, name: str) -> str:
    tensors, buffers = (
        re.search(HALF.format(half=half, name=re.escape(entry), handle=handle), text)
        for half, handle in (("tensors", FUNCTION), ("buffers", BUFFERS_FUNCTION))
    )
    if tensors is None or buffers is None:
        raise UsageError(f"{name}: the schedule of {entry} is missing")
    # the library finds the matmul itself: this line is not part of the schedule
    lines = tensors["lines"].removeprefix(MATMUL_OF)
    return ScriptHalves(lines, buffers["lines"]).script(problem)


def slowdown_text(slowdown: PairedSlowdown) -> str:
    """Returns how much longer a code takes: "+2.0% time (99 % interval +1.0% .. +3.0%)".

    Where the times cannot be compared, the reason.
    """
    compared = session_comparison(slowdown)
    if isinstance(compared, Comparable):
        return compared.longer_text
    return compared.reason
