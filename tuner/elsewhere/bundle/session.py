"""One session of ``tuner measure``: times a bundle's candidates on a GPU and summarizes the results.

Candidates are timed per problem, the most promising first; each result is stored at once. A tenth of a
problem's time is kept to time its fastest candidates again, interleaved with cuBLAS.
"""

import contextlib
import datetime
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from tuner.analysis.ratios import Comparable, comparison
from tuner.core.candidate import candidate_document
from tuner.core.errors import DeviceError, Failure, TunerError, UsageError
from tuner.core.gpu import chip_of
from tuner.core.interfaces import FINAL_EFFORT, Effort, FinalTimes
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.reliability import Reliability
from tuner.core.remote_results import (
    BINARY,
    TEXT,
    BaselineTime,
    FinalTime,
    MeasuredTrial,
    NoiseFloor,
    Origin,
    PendingTrial,
    RemoteResults,
)
from tuner.core.round_quality import Evidence, reliability_in_round
from tuner.core.runs import Baseline
from tuner.core.serialization import encode, seconds_text
from tuner.elsewhere.bundle.archive import Bundle
from tuner.elsewhere.bundle.gpu_child import EvaluatedCode, GpuChild, artifact_of
from tuner.elsewhere.bundle.results_file import Line
from tuner.gpu.cost_model.untimed import best_first
from tuner.gpu.driver.driver import CudaFacts
from tuner.gpu.driver.probe import require_chip
from tuner.runtime.timing_lock import TimingLock
from tuner.runtime.workers.protocol import Factory, Reply
from tuner.tuning.budget import TOP_TRIALS, search_effort
from tuner.tuning.remeasurement import noise_of

REMEASUREMENT_SHARE = 0.1  # of a problem's time, reserved for re-measuring the best candidates
LEAST_S = 1.0  # no candidate is started with less time left

Clock = Callable[[], float]


@dataclass(frozen=True)
class Gpu:
    """The GPU of a measuring session: its properties, and functions to lock it, evaluate and time on it."""

    facts: CudaFacts
    timing_lock: Callable[
        [Problem, Callable[[str], None]], TimingLock
    ]  # (problem, report of who holds the lock)
    evaluate: Callable[[str], Factory]  # (chip) -> factory of an evaluator
    baseline: Callable[[Problem, Effort, int], Baseline]  # (problem, effort, seed); raises TunerError


@dataclass(frozen=True)
class MeasuringOrder:
    """What a session has to measure: a bundle, the time limit, and results of earlier sessions."""

    bundle: Bundle
    seconds: float
    known: RemoteResults  # of an earlier session on the same bundle and machine


@dataclass(frozen=True)
class MeasuringCounts:
    """How many candidates of a bundle were measured, failed or left; without those of earlier sessions."""

    measured: int = 0
    failed: int = 0
    left: int = 0  # not measured for lack of time
    other_chips: int = 0  # with code for another chip


class MeasuringSession:
    """Times a bundle's candidates on one GPU.

    ``keep`` gets each result as soon as it is known, ``report`` lines of progress; ``clock`` returns seconds.
    """

    def __init__(
        self,
        order: MeasuringOrder,
        gpu: Gpu,
        keep: Callable[[Line], None],
        report: Callable[[str], None],
        clock: Clock = time.monotonic,
    ) -> None:
        self._order = order
        self._gpu = gpu
        self._keep = keep
        self._report = report
        self._clock = clock
        self._end_s = clock() + order.seconds
        self._counts = MeasuringCounts()
        self._seeds = {trial.origin: index for index, trial in enumerate(order.bundle.trials)}

    def run(self) -> MeasuringCounts:
        """Times each problem's candidates, then its fastest again with the baseline, while time is left.

        Returns the numbers of candidates measured, failed and left. Candidates with known results are
        skipped.
        """
        trials = self._order.bundle.trials
        here = runnable(trials, self._gpu.facts)
        known = {trial.origin for trial in self._order.known.trials}
        todo = [trial for trial in here if trial.origin not in known]
        self._counts = MeasuringCounts(left=len(todo), other_chips=len(trials) - len(here))
        groups: dict[Problem, list[PendingTrial]] = {}
        for trial in best_first(todo, self._gpu.facts.multiprocessors):
            groups.setdefault(trial.problem, []).append(trial)
        for index, (problem, group) in enumerate(groups.items()):
            left_s = self._end_s - self._clock()
            self._measure(problem, group, self._clock() + left_s / (len(groups) - index))
        return self._counts

    def _measure(self, problem: Problem, group: list[PendingTrial], end_s: float) -> None:
        self._report(f"{problem.key}: {len(group)} candidates, {end_s - self._clock():.0f} s")
        child = GpuChild(problem, self._gpu.evaluate(group[0].program.chip))
        stop_s = end_s - REMEASUREMENT_SHARE * (end_s - self._clock())
        by_origin = {trial.origin: trial for trial in self._order.bundle.trials}
        wrong = wrong_trials(self._order.known)
        timed = [  # (median in seconds, trial, code), first of candidates that an earlier session timed
            (known.outcome.median_s, by_origin[known.origin], known.code)
            for known in self._order.known.trials
            if isinstance(known.outcome, Measurement) and known.outcome.is_complete
            if known.problem == problem and known.origin in by_origin and known.origin not in wrong
        ]
        with contextlib.closing(child):
            for trial in group:
                best_s = min((median_s for median_s, _, _ in timed), default=None)
                measured = self._candidate(child, trial, best_s, stop_s)
                if measured is None:
                    break
                if isinstance(measured.outcome, Measurement) and measured.outcome.is_complete:
                    timed.append((measured.outcome.median_s, trial, measured.code))
            ranked = sorted(timed, key=lambda known: known[0])
            # a final time of an earlier session is of another round: only what is timed together is compared
            earlier = {final_time.origin for final_time in self._order.known.final_times}
            best = ranked[:TOP_TRIALS]
            best += [known for known in ranked[TOP_TRIALS:] if known[1].origin in earlier]
            baseline = self._finals(child, problem, best, end_s)
        if baseline is not None:
            self._store_baseline(problem, baseline)
        elif timed:
            self._baseline(problem, end_s)

    def _candidate(
        self, child: GpuChild, trial: PendingTrial, best_s: float | None, stop_s: float
    ) -> MeasuredTrial | None:
        effort = search_effort(best_s)
        with self._locked(trial.problem):
            left_s = stop_s - self._clock()
            if left_s < LEAST_S:
                return None
            evaluated = child.evaluate(trial, effort, self._seed(trial), left_s)
        if evaluated is None:
            return None
        measured = measured_trial(trial, evaluated)
        self._keep(measured)
        counts = self._counts
        is_measured = isinstance(measured.outcome, Measurement)
        self._counts = replace(
            counts,
            measured=counts.measured + is_measured,
            failed=counts.failed + (not is_measured),
            left=counts.left - 1,
        )
        self._report(f"  trial {measured.id}: {outcome_text(measured)}")
        return measured

    def _finals(
        self, child: GpuChild, problem: Problem, best: list[tuple[float, PendingTrial, str]], end_s: float
    ) -> Baseline | None:
        while len(best) >= 2 and end_s - self._clock() >= LEAST_S:
            artifacts = tuple(artifact_of(trial, code) for _, trial, code in (*best, best[0]))  # A/A: noise
            with self._locked(problem):
                left_s = end_s - self._clock()
                finals = child.remeasure(artifacts, FINAL_EFFORT, self._seed(best[0][1]), left_s)
            wrong = self._keep_wrong(problem, best, finals)
            if not wrong:
                self._keep_times(problem, best, finals)
                return finals.baseline
            best = [timed for timed in best if timed[1].origin not in wrong]
        return None

    def _keep_wrong(
        self, problem: Problem, best: list[tuple[float, PendingTrial, str]], finals: FinalTimes
    ) -> set[Origin]:
        wrong = set()
        trials = [trial for _, trial, _ in (*best, best[0])]
        for trial, outcome in zip(trials, finals.times, strict=False):
            if isinstance(outcome, Failure) and outcome.shows_a_defect and trial.origin not in wrong:
                self._keep(FinalTime(trial.origin, problem, outcome))
                self._report(f"  trial {trial.id}: failed when it was timed again: {outcome.reason}")
                wrong.add(trial.origin)
        return wrong

    def _keep_times(
        self, problem: Problem, best: list[tuple[float, PendingTrial, str]], finals: FinalTimes
    ) -> None:
        times = finals.measured
        for (_, trial, _), measurement in zip(best, times, strict=False):
            if measurement is not None:
                self._keep(FinalTime(trial.origin, problem, measurement))
        if times and times[0] is not None and times[-1] is not None:
            self._keep(NoiseFloor(problem, noise_of(times[0], times[-1])))

    def _baseline(self, problem: Problem, end_s: float) -> None:
        known = {baseline.problem for baseline in self._order.known.baselines}
        if problem in known or end_s - self._clock() < LEAST_S:
            return
        try:
            with self._locked(problem):
                baseline = self._gpu.baseline(problem, Effort(), self._order.bundle.seed)
        except TunerError as error:
            self._report(f"  no baseline: {error}")
            return
        self._store_baseline(problem, baseline)

    def _store_baseline(self, problem: Problem, baseline: Baseline) -> None:
        self._keep(BaselineTime(problem, baseline))
        self._report(f"  {baseline.name}: {seconds_text(baseline.measurement.median_s)}")

    def _locked(self, problem: Problem) -> AbstractContextManager[None]:
        return self._gpu.timing_lock(problem, lambda who: self._report(f"  waits for {who}")).held()

    def _seed(self, trial: PendingTrial) -> int:
        return self._order.bundle.seed + self._seeds[trial.origin]


def runnable(trials: tuple[PendingTrial, ...], facts: CudaFacts) -> tuple[PendingTrial, ...]:
    """Returns the trials with code for this GPU's chip.

    Raises UsageError if there are trials, but none has.
    """
    here = []
    for trial in trials:
        with contextlib.suppress(DeviceError):
            require_chip(chip_of(trial.program.chip), facts)
            here.append(trial)
    if not here and trials:
        chips = ", ".join(sorted({trial.program.chip for trial in trials}))
        raise UsageError(f"bundle: has code for {chips}, but this GPU is {facts.name}, {facts.chip}")
    return tuple(here)


def measured_trial(trial: PendingTrial, reply: Reply) -> MeasuredTrial:
    """Returns a candidate's result (time and verdict, or failure) as the value that a results file stores."""
    outcome = reply.value
    code = BINARY if trial.program.binary else TEXT
    if isinstance(outcome, EvaluatedCode):
        code = outcome.code
        outcome = outcome.measurement
    return MeasuredTrial(
        origin=trial.origin,
        id=trial.id,
        problem=trial.problem,
        candidate=trial.candidate,
        chip=trial.program.chip,
        script_sha256=trial.script_sha256,
        artifact_sha256=trial.artifact_sha256,
        code=code,
        finished=datetime.datetime.now(datetime.UTC),
        outcome=outcome,
        verdict=reply.verdict,
        stage_s=reply.stage_s,
    )


def outcome_text(trial: MeasuredTrial) -> str:
    """Returns a trial's median time as text; of a failed trial "STAGE: REASON"."""
    if isinstance(trial.outcome, Failure):
        return f"{trial.outcome.stage.value}: {trial.outcome.reason}"
    return seconds_text(trial.outcome.median_s)


def wrong_trials(results: RemoteResults) -> set[Origin]:
    """Returns the origins of the trials that were timed, but failed when they were timed again."""
    return {final.origin for final in results.final_times if isinstance(final.measurement, Failure)}


def best_of(results: RemoteResults) -> dict[Problem, tuple[MeasuredTrial, Measurement]]:
    """Returns each problem's fastest trial with its time; problems without a time are left out.

    Where trials of a problem were re-measured, only these times count. Early-stopped trials, and those that
    failed when they were timed again, are left out.
    """
    wrong = wrong_trials(results)
    final_times = {
        final.origin: final.measurement
        for final in results.final_times
        if isinstance(final.measurement, Measurement) and final.origin not in wrong
    }
    with_remeasurement = {final.problem for final in results.final_times if final.origin in final_times}
    best: dict[Problem, tuple[MeasuredTrial, Measurement]] = {}
    for trial in results.trials:
        is_out = trial.problem in with_remeasurement and trial.origin not in final_times
        if (
            trial.origin in wrong
            or is_out
            or not isinstance(trial.outcome, Measurement)
            or not trial.outcome.is_complete
        ):
            continue
        time = final_times.get(trial.origin, trial.outcome)
        if trial.problem not in best or time.median_s < best[trial.problem][1].median_s:
            best[trial.problem] = (trial, time)
    return best


def best_lines(results: RemoteResults) -> Iterator[str]:
    """Yields a line per problem: time, GFLOP/s, ratio to a timed baseline or why there is none, trial."""
    baselines = {baseline.problem: baseline.baseline for baseline in results.baselines}
    for problem, (trial, measured) in best_of(results).items():
        speed = problem.flop / measured.median_s / 1e9
        time_text = f"{seconds_text(measured.median_s)} ({_reliability(results, trial, measured).text})"
        line = f"{problem.key}: {time_text}, {speed:.0f} GFLOP/s"
        if baseline := baselines.get(problem):
            evidence = _evidence(results, trial)
            evidence = replace(evidence, is_interleaved=evidence.is_interleaved and baseline.is_interleaved)
            compared = comparison(measured, baseline.measurement, evidence)
            if isinstance(compared, Comparable):
                line += f", {compared.times_text} {baseline.name}"
            else:
                line += f", no ratio to {baseline.name}: {compared.reason}"
        yield f"{line}; trial {trial.id}: {trial.candidate.text}"


def _evidence(results: RemoteResults, trial: MeasuredTrial) -> Evidence:
    noises = {noise.problem: noise.noise for noise in results.noises}
    is_final = any(final.origin == trial.origin for final in results.final_times)
    return Evidence(is_final, noises.get(trial.problem))


def _reliability(results: RemoteResults, trial: MeasuredTrial, time: Measurement) -> Reliability:
    return reliability_in_round((time,), _evidence(results, trial))


def summary_document(path: str, counts: MeasuringCounts, results: RemoteResults, seconds: float) -> Any:
    """Returns the JSON document of ``measure --json``.

    ``path``: of the results file; ``seconds``: how long the session took.
    """
    baselines = {baseline.problem: baseline.baseline for baseline in results.baselines}
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
