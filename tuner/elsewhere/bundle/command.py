"""``python -m tuner measure --bundle FILE`` times a bundle; needs only numpy and a CUDA driver."""

import argparse
import datetime
import json
import shlex
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from tuner.core.errors import TunerError, UsageError, error_lines
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.remote_results import MeasuringProvenance, RemoteResults
from tuner.core.runs import Baseline
from tuner.elsewhere.bundle.archive import Bundle, read_bundle
from tuner.elsewhere.bundle.gpu_child import gpu_evaluator_factory
from tuner.elsewhere.bundle.results_file import ResultsFile, read_results
from tuner.elsewhere.bundle.session import (
    Gpu,
    MeasuringCounts,
    MeasuringOrder,
    MeasuringSession,
    best_lines,
    runnable,
    summary_document,
)
from tuner.gpu.driver.probe import describe_gpu, machine_of
from tuner.runtime.timing_lock import LockWait, TimingLock, holder_text
from tuner.version import __version__

DEFAULT_SECONDS = 300.0
DONE = 0
FAILED = 1
MISUSED = 2
INTERRUPTED = 130
EXAMPLE = "Example: tuner measure --bundle pending.bundle --seconds 300"
NO_BUNDLE = "measure: --bundle FILE is missing; a full installation of tuner can do without it"


@dataclass(frozen=True)
class MeasuringRequest:
    """The options of ``tuner measure``; after ``seconds`` no further candidate is begun.

    Raises UsageError unless ``seconds`` are between 0 and 1e9.
    """

    bundle: Path
    seconds: float = DEFAULT_SECONDS
    results: Path | None = None  # None: next to the bundle
    as_json: bool = False
    is_local: bool = False  # the results are imported into a database afterwards

    def __post_init__(self) -> None:
        if not 0 < self.seconds < 1e9:
            raise UsageError(f"seconds: found {self.seconds:g}, allowed more than 0")

    @property
    def results_file(self) -> Path:
        """Returns the path of the results file: by default the bundle's path + ``.results.jsonl``."""
        return self.results or self.bundle.with_name(f"{self.bundle.name}.results.jsonl")


def main(options: list[str]) -> int:
    """Runs ``tuner measure`` with command-line options; prints errors on stderr.

    Returns the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
    """
    try:
        return measure(_request(options), gpu_here)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last frame: users get a line, --debug the rest
        if "--debug" in options:
            traceback.print_exc()
        if isinstance(error, TunerError):
            line = error.message
            hint = error.hint
        elif isinstance(error, OSError):
            line = str(error)
            hint = ""
        else:
            line = f"defect: {type(error).__name__}: {error}"
            hint = "--debug shows where"
        _report(error_lines(line, hint))
        if isinstance(error, UsageError):
            return MISUSED
        return FAILED


def measure(request: MeasuringRequest, find_gpu: Callable[[], Gpu]) -> int:
    """Times a bundle's candidates, writes the results file and prints a summary.

    Returns the exit code: 1 if candidates failed and none was measured, else 0. Raises UsageError for a
    damaged bundle, before ``find_gpu`` is called, for one without code for the GPU, and for a results file of
    another bundle or machine.
    """
    began_s = time.monotonic()
    bundle = read_bundle(request.bundle)
    gpu = find_gpu()
    runnable(bundle.trials, gpu.facts)  # raises before a results file is created
    path = request.results_file
    known = _known(path, bundle, gpu)
    order = MeasuringOrder(bundle, request.seconds, known)
    with closing(ResultsFile(path, known.provenance)) as file:
        counts = MeasuringSession(order, gpu, file.append, _report).run()
    results = read_results(path)
    seconds = time.monotonic() - began_s
    if request.as_json:
        print(json.dumps(summary_document(str(path), counts, results, seconds), indent=2, allow_nan=False))
    else:
        _print_end(request, counts, results)
    if counts.failed and not counts.measured:
        return FAILED
    return DONE


def gpu_here() -> Gpu:
    """Returns this machine's first GPU, with functions that lock, evaluate and time cuBLAS on it.

    Raises DeviceError if there is no GPU or driver.
    """
    here = describe_gpu()

    def timing_lock(problem: Problem, report: Callable[[str], None]) -> TimingLock:
        return TimingLock(here.bus, holder_text(problem), LockWait(report))

    return Gpu(here.facts, timing_lock, gpu_evaluator_factory, _baseline)


def _baseline(problem: Problem, effort: Effort, seed: int) -> Baseline:
    from tuner.gpu.target.baseline import time_cublas_in_child  # not at start-up

    return time_cublas_in_child(problem, effort, seed)


def _known(path: Path, bundle: Bundle, gpu: Gpu) -> RemoteResults:
    provenance = MeasuringProvenance(
        session=str(uuid.uuid4()),
        bundle=bundle.sha256,
        tuner=__version__,
        started=datetime.datetime.now(datetime.UTC),
        machine=machine_of(chip_of(gpu.facts.chip), gpu.facts),
        driver=gpu.facts.driver_version,
    )
    if not path.exists() or path.stat().st_size == 0:
        return RemoteResults(provenance, ())
    known = read_results(path)
    earlier = known.provenance
    if replace(earlier, session=provenance.session, started=provenance.started) != provenance:
        what = f"of bundle {earlier.bundle[:12]} on {earlier.machine.name}, tuner {earlier.tuner}"
        raise UsageError(f"{path}: has results {what}", "name another file: --results FILE")
    return known


def _print_end(request: MeasuringRequest, counts: MeasuringCounts, results: RemoteResults) -> None:
    for line in best_lines(results):
        print(line)
    print(
        f"{counts.measured} measured, {counts.failed} failed, {counts.left} left, as the time was over",
        end="",
    )
    print(f", {counts.other_chips} for other chips" if counts.other_chips else "")
    if not request.is_local:
        path = shlex.quote(str(request.results_file))
        print(f"next, where the bundle was made: tuner bundle import {path}")


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _request(options: list[str]) -> MeasuringRequest:
    parser = _Parser(prog="tuner measure", description=__doc__, epilog=EXAMPLE, allow_abbrev=False)
    parser.add_argument("--pending", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bundle", type=Path, metavar="FILE", help="made by: tuner bundle export")
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help="begin nothing after so long")
    parser.add_argument("--results", type=Path, metavar="FILE", help="default: next to the bundle")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parsed: Any = parser.parse_args(options)
    if parsed.bundle is None:
        raise UsageError(NO_BUNDLE)
    return MeasuringRequest(parsed.bundle, parsed.seconds, parsed.results, parsed.json)


class _Parser(argparse.ArgumentParser):
    """Raises UsageError in place of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"measure: {message}")
