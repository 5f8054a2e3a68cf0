"""Wall time of each pass in seconds, by MLIR's own timing, for everything compiled in a ``with`` block.

MLIR prints its report to the process's stderr when a pass manager is destroyed; while passes are timed, the
file descriptor of stderr is redirected to a temporary file.

      ----Wall Time----  ----Name----
        0.0003 ( 28.0%)    ConvertLinalgToLoopsPass
        0.0000 (  0.1%)      (A) DominanceInfo
        0.0004 ( 44.5%)  Rest
"""

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tuner.core.pass_seconds import PassSeconds
from tuner.mlir.bindings import ir, passmanager

LINE = re.compile(r"^\s+(\d+\.\d+) \(\s*[\d.]+%\)\s+(\w+)$", re.MULTILINE)  # neither pipelines nor analyses
OF_THE_REPORT = ("Rest", "Total")  # lines of the report that are no pass


class PassTimes:
    """Wall time and number of runs of each MLIR pass, added up over several reports."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()

    def add(self, report: str) -> None:
        """Adds the passes of one timing report; ``report`` is the text that MLIR prints."""
        for seconds, name in LINE.findall(report):
            if name not in OF_THE_REPORT:
                self._seconds[name] += float(seconds)  # type: ignore[assignment]
                self._runs[name] += 1

    @property
    def passes(self) -> tuple[PassSeconds, ...]:
        """Returns the total seconds and the number of runs of each pass that ran, the slowest pass first."""
        each = (PassSeconds(name, float(self._seconds[name]), runs) for name, runs in self._runs.items())
        return tuple(sorted(each, key=lambda one: (-one.seconds, one.name)))


_times: PassTimes | None = None  # of the active timed_passes block


@contextmanager
def timed_passes() -> Iterator[PassTimes]:
    """Yields a PassTimes that collects the time of every pass run by ``run_pipeline`` in the ``with`` block.

    Includes passes that other threads run during the block, but no pass of a pipeline that fails. Blocks
    cannot be nested.
    """
    global _times
    _times = PassTimes()
    try:
        yield _times
    finally:
        _times = None


def run_pipeline(module: ir.Module, pipeline: str) -> None:
    """Runs a pass pipeline, given as MLIR's text form, on a module in place.

    In a ``timed_passes`` block, also times each pass; the process's stderr is then redirected during the run.
    Raises MLIR's exceptions: for a pipeline that does not parse, and for a pass that fails.
    """
    if _times is None:
        passmanager.PassManager.parse(pipeline).run(module.operation)
        return
    with _caught_stderr() as file:
        manager = passmanager.PassManager.parse(pipeline)
        manager.enable_timing()
        try:
            manager.run(module.operation)
        finally:
            del manager  # its destructor prints the report
    _times.add(file[0])


@contextmanager
def _caught_stderr() -> Iterator[list[str]]:
    """Yields a list that holds, after the block, the text printed to the file descriptor of stderr."""
    found: list[str] = []
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            found.append(file.read().decode(errors="replace"))
