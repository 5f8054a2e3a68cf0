"""How often `tuner check` calls unchanged code slower, and how often it catches code that is slower.

    python -m benchmarks.check_alarms --output benchmarks/results/check_alarms.json

Begin on a quiet machine. Scripts are tuned and exported; each check then has processes of its own, as the
command has. There are three kinds: of the unchanged code, of code with additional work in front that was
calibrated to make a call 5 % longer, and of the unchanged code while a loop keeps each processor busy. Exits
with 1 where the acceptance criteria are missed: no check of unchanged code says slower or fails, 9 of 10 of
slower code say slower, and on a busy machine each check says that it cannot tell.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tuner
from benchmarks.busy_loops import spinning
from benchmarks.results_file import add_report_options, emit, report
from benchmarks.slowed_code import calibrated, slowed
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core.candidate import Candidate
from tuner.core.interfaces import AbstractRunner, BoundRecord, Script
from tuner.core.matmul import Matmul
from tuner.core.problem_text import parse_shape
from tuner.db.store import Store
from tuner.results.exported_trial import exported
from tuner.results.regression.reevaluation import SESSION_EFFORT, EvaluationCase, evaluated, runner_of
from tuner.results.regression.script_check import CheckFinding, ScriptCheck, compared
from tuner.space.scripts.header import ScriptProvenance, parse_provenance, without_header
from tuner.targets.registry import real_backends

SHAPES = ("96x96x96", "128x128x128", "160x160x160")
TUNING_TRIALS = 8
RECORDING_TRIES = 5  # runs at most, until the time of one is reliable
CAUGHT_SHARE = 0.9
KINDS = ("unchanged", "slower", "busy")


@dataclass(frozen=True)
class RecordedScript:
    """An exported script without its header, what the header says, and the calibrated additional work."""

    provenance: ScriptProvenance
    script: str
    iterations: int = 0  # of additional work that make a call longer by --share


@dataclass(frozen=True)
class TimedCheck:
    """One check with its result."""

    shape: str
    kind: str  # one of KINDS
    found: ScriptCheck
    seconds: float
    load: float


def main() -> None:
    """Runs the checks; exits with 1 where they miss the acceptance criteria."""
    options = _options()
    started_s = time.monotonic()
    recordings = [_calibrated(_recording(shape), options.share) for shape in options.shapes]
    rows = [*_rows(recordings, "unchanged", options), *_rows(recordings, "slower", options)]
    with spinning(len(os.sched_getaffinity(0)), is_bound=True):
        rows += _rows(recordings, "busy", options)
    counts = {kind: Counter(row.found.finding.value for row in rows if row.kind == kind) for kind in KINDS}
    summary = {
        "injected_share": options.share,
        "max_slowdown": options.max_slowdown,
        **{kind: dict(counts[kind]) for kind in KINDS},
        "seconds_per_check": {
            kind: round(
                sum(row.seconds for row in rows if row.kind == kind) / max(counts[kind].total(), 1), 2
            )
            for kind in KINDS
        },
        "seconds": round(time.monotonic() - started_s, 1),
        "passed": has_passed(counts),
    }
    print(summary, file=sys.stderr)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(
        report("check_alarms", settings, [_document(row) for row in rows], summary),
        options.json,
        options.output,
    )
    sys.exit(not summary["passed"])


def has_passed(counts: dict[str, Counter[str]]) -> bool:
    """Returns whether the findings of each kind meet the acceptance criteria."""
    slower, cannot_tell = CheckFinding.SLOWER.value, CheckFinding.CANNOT_TELL.value
    return (
        counts["unchanged"][slower] == counts["unchanged"][CheckFinding.FAILED.value] == 0
        and counts["slower"][slower] >= CAUGHT_SHARE * counts["slower"].total()
        and counts["busy"][cannot_tell] == counts["busy"].total()
    )


def _recording(shape: str) -> RecordedScript:
    """Tunes a little and exports the best, as a user does on a quiet machine."""
    for number in range(RECORDING_TRIES):
        with tempfile.TemporaryDirectory() as folder:
            database = str(Path(folder) / "check.db")
            run = tuner.tune(
                Matmul(*parse_shape(shape)), target="cpu", trials=TUNING_TRIALS, seed=number, db=database
            )
            if run.best is None:
                raise SystemExit(f"{shape}: no candidate worked")
            with Store.open(database) as store:
                backends = real_backends()
                text = exported(backends, store, run.best, "script", None).decode()
                document = exported(backends, store, run.best, "provenance", None).decode()
        provenance = parse_provenance(document, text, shape)
        print(
            f"recorded {shape}: {provenance.round} {provenance.reliability.unreliable}",
            file=sys.stderr,
            flush=True,
        )
        if not provenance.reliability.unreliable:
            return RecordedScript(provenance, without_header(text))
    raise SystemExit(f"{shape}: {RECORDING_TRIES} runs were unreliable: begin on a quiet machine")


def _calibrated(recording: RecordedScript, share: float) -> RecordedScript:
    with _runner(recording, 0) as (runner, current):
        return replace(recording, iterations=calibrated(runner, current, share))


def _rows(recordings: list[RecordedScript], kind: str, options: argparse.Namespace) -> Iterator[TimedCheck]:
    for number in range(options.busy_checks if kind == "busy" else options.checks):
        recording = recordings[number % len(recordings)]
        started_s = time.monotonic()
        with _runner(recording, number) as (runner, current):
            if kind == "slower":
                assert current.artifact is not None
                current = replace(current, artifact=slowed(current.artifact, recording.iterations))
            spare = real_backends().machine().physical_cores - recording.provenance.threads
            limits = SlowdownLimits.up_to(options.max_slowdown)
            found = compared(runner, current, recording.provenance, limits, spare)
        seconds = time.monotonic() - started_s
        row = TimedCheck(recording.provenance.problem.shape, kind, found, seconds, os.getloadavg()[0])
        print(_document(row), file=sys.stderr, flush=True)
        yield row


@contextlib.contextmanager
def _runner(recording: RecordedScript, seed: int) -> Iterator[tuple[AbstractRunner, BoundRecord]]:
    """Starts new processes; gives the runner and the script, compiled and verified."""
    provenance, script = recording.provenance, Script.of(recording.script)
    case = EvaluationCase(provenance.problem, provenance.target, provenance.threads, seed)
    with runner_of(real_backends(), case, lambda _candidate: script) as runner:
        yield runner, evaluated(runner, Candidate(provenance.strategy, provenance.knobs), SESSION_EFFORT)


def _document(row: TimedCheck) -> dict[str, Any]:
    slowdown = row.found.slowdown
    return {
        "shape": row.shape,
        "kind": row.kind,
        "finding": row.found.finding.value,
        "ratio": slowdown and round(1 + slowdown.median, 4),
        "interval": slowdown and [round(1 + end, 4) for end in slowdown.interval],
        "reason": row.found.reason,
        "sessions": row.found.sessions,
        "seconds": round(row.seconds, 2),
        "load": round(row.load, 2),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="MxNxK ...")
    parser.add_argument("--checks", type=int, default=50, help="of unchanged and of slower code, each")
    parser.add_argument("--busy-checks", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.05, help="of additional work")
    parser.add_argument("--max-slowdown", type=float, default=0.05)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
