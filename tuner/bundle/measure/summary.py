"""What a measuring came to, for people and for programs."""

from collections.abc import Iterator
from typing import Any

from tuner.bundle.measure.session import MeasuringCounts
from tuner.core.measured_elsewhere import ElsewhereResults, MeasuredTrial
from tuner.core.problem import Problem
from tuner.core.record import Measurement


def best_of(results: ElsewhereResults) -> dict[Problem, tuple[MeasuredTrial, Measurement]]:
    """Returns the fastest of each problem; where some were timed again together, only those count."""
    finals = {final.origin: final.measurement for final in results.finals}
    with_finals = {final.problem for final in results.finals}
    best: dict[Problem, tuple[MeasuredTrial, Measurement]] = {}
    for trial in results.trials:
        is_out = trial.problem in with_finals and trial.origin not in finals
        if is_out or not isinstance(trial.outcome, Measurement) or not trial.outcome.is_complete:
            continue
        time = finals.get(trial.origin, trial.outcome)
        if trial.problem not in best or time.median_s < best[trial.problem][1].median_s:
            best[trial.problem] = (trial, time)
    return best


def best_lines(results: ElsewhereResults) -> Iterator[str]:
    """Yields a line for the best of each problem."""
    baselines = {each.problem: each.baseline for each in results.baselines}
    for problem, (trial, time) in best_of(results).items():
        speed = problem.flop / time.median_s / 1e9
        line = f"{problem.key}: {time.median_s * 1e6:.2f} us, {speed:.0f} GFLOP/s"
        if problem in baselines:
            baseline = baselines[problem]
            ratio = baseline.measurement.median_s / time.median_s
            line += f", {ratio:.2f}x {baseline.name}"
        yield f"{line}; trial {trial.id}: {trial.candidate.text}"


def summary_document(path: str, counts: MeasuringCounts, results: ElsewhereResults, seconds: float) -> Any:
    """Returns the JSON document of the command."""
    baselines = {each.problem: each.baseline for each in results.baselines}
    return {
        "results": path,
        "bundle": results.provenance.bundle,
        "machine": results.provenance.machine.name,
        "driver": results.provenance.driver,
        "counts": {
            "measured": counts.measured,
            "failed": counts.failed,
            "left": counts.left,
            "other_chips": counts.other_chips,
        },
        "best": [
            {
                "problem": problem.key,
                "trial": trial.id,
                "strategy": trial.candidate.strategy,
                "knobs": dict(trial.candidate.choices),
                "median_s": time.median_s,
                "interval_s": list(time.interval_s),
                "gflop_per_s": problem.flop / time.median_s / 1e9,
                "baseline_s": baselines[problem].measurement.median_s if problem in baselines else None,
            }
            for problem, (trial, time) in best_of(results).items()
        ],
        "seconds": seconds,
    }
