"""Pass pipelines: run with errors as CandidateError, timed pass by pass, and the IR kept after each stage."""

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any

from tuner.core.errors import CandidateError, Stage
from tuner.core.progress import step
from tuner.core.records import PassSeconds
from tuner.mlir.bindings import ir, passmanager
from tuner.mlir.transform import first_diagnostic

_kept: list[tuple[str, str]] | None = None  # the list of the active kept_stages block
LINE = re.compile(r"^\s+(\d+\.\d+) \(\s*[\d.]+%\)\s+(\w+)$", re.MULTILINE)  # neither pipelines nor analyses
OF_THE_REPORT = ("Rest", "Total")  # names in the report that are not passes
MODULE = "builtin.module"
NESTED = re.compile(r"([\w.]+)\((.*)\)")  # a pipeline on the operations of one name
OPENING = "({"
CLOSING = ")}"


@contextmanager
def kept_stages() -> Iterator[list[tuple[str, str]]]:
    """Yields a list to which each lowering in the ``with`` block appends (stage name, IR text after it).

    Lowerings of other threads are recorded too; blocks cannot be nested.
    """
    global _kept
    stages: list[tuple[str, str]] = []
    _kept = stages
    try:
        yield stages
    finally:
        _kept = None


def reached(stage: str, module: ir.Module) -> None:
    """Appends (``stage``, the module's IR text) to the list of the active ``kept_stages`` block, if any."""
    if _kept is not None:
        _kept.append((stage, str(module)))


class PassTimes:
    """Wall time in seconds and number of runs of each MLIR pass, added up over several reports."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()

    def add(self, report: str) -> None:
        for seconds, name in LINE.findall(report):
            if name not in OF_THE_REPORT:
                self._seconds[name] += float(seconds)  # type: ignore[assignment]
                self._runs[name] += 1

    @property
    def passes(self) -> tuple[PassSeconds, ...]:
        """Returns the total seconds and the number of runs of each pass that ran, the slowest pass first."""
        passes = (PassSeconds(name, float(self._seconds[name]), runs) for name, runs in self._runs.items())
        return tuple(sorted(passes, key=lambda timed: (-timed.seconds, timed.name)))


_times: PassTimes | None = None  # of the active timed_passes block


@contextmanager
def timed_passes() -> Iterator[PassTimes]:
    """Yields a PassTimes: seconds (wall time) of each pass that ``run_pipeline`` runs in the ``with`` block.

    Includes passes that other threads run during the block, but no pass of a pipeline that fails. Blocks
    cannot be nested. MLIR prints its report to the process's stderr when a pass manager is destroyed; while
    passes are timed, the file descriptor of stderr is redirected to a temporary file.

          ----Wall Time----  ----Name----
            0.0003 ( 28.0%)    ConvertLinalgToLoopsPass
            0.0000 (  0.1%)      (A) DominanceInfo
            0.0004 ( 44.5%)  Rest
    """
    global _times
    _times = PassTimes()
    try:
        yield _times
    finally:
        _times = None


@cache
def single_passes(pipeline: str) -> tuple[tuple[str, str], ...]:
    """Returns (pass, pipeline of this pass alone) for the passes of a pipeline, in their order.

    ``builtin.module(func.func(a,b{c=1}),d)`` has a, b{c=1} and d, of which the second is run by
    ``builtin.module(func.func(b{c=1}))``.
    """
    nested = NESTED.fullmatch(pipeline)
    if nested is None:
        return ((pipeline, pipeline),)
    inner = chain.from_iterable(map(single_passes, _listed(nested[2])))
    return tuple((name, f"{nested[1]}({alone})") for name, alone in inner)


def _listed(text: str) -> tuple[str, ...]:
    """Returns what commas separate outside of brackets: "a,f(b,c),d{e=1,2}" has three parts."""
    starts = [0]
    depth = 0
    for position, character in enumerate(text):
        depth += (character in OPENING) - (character in CLOSING)
        if character == "," and depth == 0:
            starts.append(position + 1)
    ends = [start - 1 for start in starts[1:]] + [len(text)]
    return tuple(text[start:end] for start, end in zip(starts, ends, strict=True))


def run_pipeline(module: ir.Module, pipeline: str, managers: Any = passmanager.PassManager) -> None:
    """Runs a pass pipeline on a module in place; raises MLIRError where a pass fails.

    Raises ValueError for text that is not a pipeline. In a ``timed_passes`` block the pipeline is timed; else
    messages about a crash or a timeout name the pass. ``managers``: the class PassManager of the wheel that
    made the module.
    """
    if _times is None:
        for name, alone in single_passes(pipeline):
            with step(f"pass {name}"):
                managers.parse(alone).run(module.operation)
        return
    with _caught_stderr() as file:
        manager = managers.parse(pipeline)
        manager.enable_timing()
        try:
            manager.run(module.operation)
        finally:
            del manager  # its destructor prints the report
    _times.add(file[0])


@contextmanager
def _caught_stderr() -> Iterator[list[str]]:
    texts: list[str] = []
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield texts
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Runs a pass pipeline on a module in place; raises CandidateError(COMPILE) with MLIR's first error."""
    try:
        run_pipeline(module, pipeline)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise CandidateError(Stage.COMPILE, first_diagnostic(error)) from error
