"""Summaries of a measuring session: lines of text, and a JSON document."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tuner.analysis.comparison import Comparable, comparison
from tuner.bundle.measure.session import MeasuringCounts
from tuner.core.dataclass_json import encode
from tuner.core.documents import candidate_document
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.reliability import Reliability
from tuner.core.remote_results import MeasuredTrial, RemoteResults
from tuner.core.round_quality import Evidence, reliability_in_round
from tuner.core.time_text import seconds_text


def best_of(results: RemoteResults) -> dict[Problem, tuple[MeasuredTrial, Measurement]]:
    """Returns, for each problem, its fastest trial and that trial's time.

    Where trials of a problem were re-measured, only re-measured trials count, with their new times.
    Early-stopped and failed trials never count; a problem without others is left out.
    """
    final_times = {final.origin: final.measurement for final in results.final_times}
    with_remeasurement = {final.problem for final in results.final_times}
    best: dict[Problem, tuple[MeasuredTrial, Measurement]] = {}
    for trial in results.trials:
        is_out = trial.problem in with_remeasurement and trial.origin not in final_times
        if is_out or not isinstance(trial.outcome, Measurement) or not trial.outcome.is_complete:
            continue
        time = final_times.get(trial.origin, trial.outcome)
        if trial.problem not in best or time.median_s < best[trial.problem][1].median_s:
            best[trial.problem] = (trial, time)
    return best


def best_lines(results: RemoteResults) -> Iterator[str]:
    """Yields a line of text per problem that has a time: time, GFLOP/s, comparison, and the fastest trial.

    The comparison is the ratio to the baseline or why there is none; it is left out without a baseline.
    """
    for problem, (trial, time) in best_of(results).items():
        speed = problem.flop / time.median_s / 1e9
        time_text = f"{seconds_text(time.median_s)} ({_reliability(results, trial, time).text})"
        line = f"{problem.key}: {time_text}, {speed:.0f} GFLOP/s"
        yield f"{line}{_baseline_text(results, trial, time)}; trial {trial.id}: {trial.candidate.text}"


def _baseline_text(results: RemoteResults, trial: MeasuredTrial, time: Measurement) -> str:
    """Returns the text that compares a time with the baseline's on the same problem; '' without baseline."""
    baselines = {each.problem: each.baseline for each in results.baselines}
    baseline = baselines.get(trial.problem)
    if baseline is None:
        return ""
    evidence = _evidence(results, trial)
    evidence = replace(evidence, is_interleaved=evidence.is_interleaved and baseline.is_interleaved)
    compared = comparison(time, baseline.measurement, evidence)
    if isinstance(compared, Comparable):
        return f", {compared.times_text} {baseline.name}"
    return f", no ratio to {baseline.name}: {compared.reason}"


def _evidence(results: RemoteResults, trial: MeasuredTrial) -> Evidence:
    noises = {each.problem: each.noise for each in results.noises}
    is_final = any(final.origin == trial.origin for final in results.final_times)
    return Evidence(is_final, noises.get(trial.problem))


def _reliability(results: RemoteResults, trial: MeasuredTrial, time: Measurement) -> Reliability:
    return reliability_in_round(time, _evidence(results, trial))


def summary_document(path: str, counts: MeasuringCounts, results: RemoteResults, seconds: float) -> Any:
    """Returns the JSON document of ``tuner measure --json``: machine, counts, and best trial per problem.

    ``path`` is the results file, ``seconds`` the duration of the session.
    """
    baselines = {each.problem: each.baseline for each in results.baselines}
    return {
        "results": path,
        "bundle": results.provenance.bundle,
        "machine": results.provenance.machine.name,
        "driver": results.provenance.driver,
        "counts": encode(counts),
        "best": [
            {
                "problem": problem.key,
                "trial": trial.id,
                **candidate_document(trial.candidate),
                "median_s": time.median_s,
                "interval_s": list(time.interval_s),
                "reliability": _reliability(results, trial, time).text,
                "gflop_per_s": problem.flop / time.median_s / 1e9,
                "baseline_s": baselines[problem].measurement.median_s if problem in baselines else None,
            }
            for problem, (trial, time) in best_of(results).items()
        ],
        "seconds": seconds,
    }
