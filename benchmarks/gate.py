"""How often `tuner check --baseline` detects slowdowns, and reports some of unchanged code.

    python -m benchmarks.gate --json --output benchmarks/results/gate.json

Each trial is one decision of the gate on real code: with additional work in front that was calibrated to make
a call 5 % longer, or unchanged but for a comment. Rates come with percentile-bootstrap intervals over the
trials; where all trials agree, the rule of three gives the end that a bootstrap cannot.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tuner
from benchmarks.results_file import add_report_options, emit, report
from benchmarks.slowed_code import calibrated, slowed
from tuner.analysis.slowdown import SlowdownLimits
from tuner.core.interfaces import AbstractRunner, BoundRecord, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.db.store import Store
from tuner.results.regression.gate import (
    GateEntry,
    GateResult,
    GateStatus,
    compared,
    entry_record,
    recorded_entry,
)
from tuner.results.regression.reevaluation import EvaluationCase, runner_of
from tuner.targets.registry import real_backends

SHAPES = ("128x128x128", "256x256x256", "512x512x512")
TUNING_TRIALS = 8
BLOCK = 5  # decisions of a kind before the processes are started anew and the work is calibrated again
RESAMPLES = 10_000
PERCENTILES = (2.5, 97.5)
RULE_OF_THREE = 3.0  # none of n: the rate is below 3 / n with 95 % confidence


@dataclass(frozen=True)
class Decision:
    """One decision of the gate."""

    shape: str
    share: float  # of additional work
    iterations: int
    result: GateResult
    seconds: float
    load: float


def main() -> None:
    """Runs the experiment."""
    options = _arguments()
    decisions: list[Decision] = []
    for shape in options.shapes:
        decisions += _decisions(_entry(Matmul(*parse_shape(shape)), options.threads), options)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    summary = _summary(decisions, options.share)
    print(_summary_line(summary), file=sys.stderr)
    emit(report("gate", settings, [_row(one) for one in decisions], summary), options.json, options.output)


def _entry(problem: Problem, threads: int) -> GateEntry:
    """Tunes briefly and returns the best trial as an entry of a gate's file."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/gate.db"
        run = tuner.tune(problem, target="cpu", threads=threads, trials=TUNING_TRIALS, db=database)
        if run.best is None:
            raise SystemExit(f"{problem.key}: no candidate worked")
        with Store.open(database) as store:
            return recorded_entry(real_backends(), store, run.best)


def _decisions(entry: GateEntry, options: argparse.Namespace) -> Iterator[Decision]:
    base = BoundRecord(entry_record(entry), Script("", ""), entry.artifact)
    for start in range(0, options.trials, BLOCK):
        case = EvaluationCase(entry.problem, entry.target, entry.threads, options.seed + start)
        with runner_of(real_backends(), case, lambda _candidate: base.script) as runner:
            iterations = calibrated(runner, base, options.share)
            for _ in range(min(BLOCK, options.trials - start)):
                for share, count in ((options.share, iterations), (0.0, 0)):
                    yield _decision(
                        runner, entry, replace(base, artifact=slowed(entry.artifact, count)), share, count
                    )


def _decision(
    runner: AbstractRunner, entry: GateEntry, current: BoundRecord, share: float, iterations: int
) -> Decision:
    started_s = time.monotonic()
    spare_cores = real_backends().machine().physical_cores - entry.threads
    result = compared(runner, entry, current, SlowdownLimits.up_to(), spare_cores)
    seconds = time.monotonic() - started_s
    decision = Decision(entry.problem.shape, share, iterations, result, seconds, os.getloadavg()[0])
    print(_line(decision), file=sys.stderr, flush=True)
    return decision


def _summary(decisions: list[Decision], share: float) -> dict[str, Any]:
    injected = [one for one in decisions if one.share]
    unchanged = [one for one in decisions if not one.share]
    measured = [one.result.slowdown.median for one in injected if one.result.slowdown]
    return {
        "injected_share": share,
        "injected_share_measured": round(float(np.mean(measured)), 4),
        "caught": _rate(injected),
        "false_alarms": _rate(unchanged),
        "unclear": sum(one.result.status is GateStatus.UNCLEAR for one in decisions),
        "seconds_per_decision": round(float(np.median([one.seconds for one in decisions])), 2),
        "load": [round(low, 2) for low in np.percentile([one.load for one in decisions], (0, 50, 100))],
    }


def _rate(decisions: list[Decision]) -> dict[str, Any]:
    """Returns how many decisions were 'slower', with a 95 % interval."""
    slower = np.array([one.result.status is GateStatus.SLOWER for one in decisions], dtype=float)
    means = np.random.default_rng(0).choice(slower, size=(RESAMPLES, len(slower))).mean(axis=1)
    low, high = (float(end) for end in np.percentile(means, PERCENTILES))
    if low == high == 0.0:
        high = min(1.0, RULE_OF_THREE / len(slower))
    if low == high == 1.0:
        low = max(0.0, 1 - RULE_OF_THREE / len(slower))
    return {
        "slower": int(slower.sum()),
        "of": len(slower),
        "rate": float(slower.mean()),
        "interval": [round(low, 4), round(high, 4)],
    }


def _row(decision: Decision) -> dict[str, Any]:
    slowdown = decision.result.slowdown
    return {
        "shape": decision.shape,
        "share": decision.share,
        "iterations": decision.iterations,
        "status": decision.result.status.value,
        "slowdown": slowdown and round(slowdown.median, 5),
        "interval": slowdown and [round(end, 5) for end in slowdown.interval],
        "noise": slowdown and round(slowdown.noise, 5),
        "sessions": decision.result.sessions,
        "seconds": round(decision.seconds, 2),
        "load": round(decision.load, 2),
    }


def _line(decision: Decision) -> str:
    row = _row(decision)
    text = f"{row['shape']:14s} {row['share']:.0%} {row['status']:10s} {row['slowdown']}"
    return f"{text} {row['interval']} noise {row['noise']} {row['sessions']} sessions {row['seconds']} s"


def _summary_line(summary: dict[str, Any]) -> str:
    caught, alarms = summary["caught"], summary["false_alarms"]
    return (
        f"caught {caught['slower']} of {caught['of']} ({caught['rate']:.1%}), "
        f"false alarms {alarms['slower']} of {alarms['of']} ({alarms['rate']:.1%}), "
        f"additional work measured {summary['injected_share_measured']:.2%}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="MxNxK ...")
    parser.add_argument("--trials", type=int, default=100, help="of each kind and shape")
    parser.add_argument("--share", type=float, default=0.05, help="of additional work")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
