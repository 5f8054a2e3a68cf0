"""Evaluates an artifact: verdict and measurement. Runs in the one process that owns the machine."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.target import AbstractEvaluator, Artifact, Effort


@dataclass(frozen=True)
class Evaluation:
    """The verdict on a correct artifact, its time if it was timed, and the seconds that each stage took."""

    verdict: Verdict
    measurement: Measurement | None  # None: the evaluator has no clock
    stage_s: tuple[tuple[str, float], ...]


def work_seed(seed: int, number: int) -> int:
    """Returns the random seed for one trial or one timed group of a run, derived from the run's seed.

    ``number`` is the trial's number, 0 or more, or a number below 0 for a group of a final re-measurement.
    """
    return int(np.random.default_rng((seed, number % 2**63)).integers(2**63))


def evaluate(
    evaluator: AbstractEvaluator,
    problem: Problem,
    artifact: Artifact,
    effort: Effort,
    rng: np.random.Generator,
    before_timing: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Evaluation:
    """Loads an artifact, verifies its result and, if the evaluator times candidates, times it.

    Args:
        evaluator: Loads, verifies and times for one target kind.
        problem: The problem that the artifact computes.
        artifact: The compiled code.
        effort: How long to time, and above which time to stop early.
        rng: Draws the inputs.
        before_timing: Called right before timing, so that a caller can quiet the machine.
        clock: Seconds, for the time of each stage.

    Raises CandidateError for an artifact that fails or whose result is wrong.
    """
    start = clock()
    loaded = evaluator.load(problem, artifact)
    loaded_at = clock()
    verdict = evaluator.verify(problem, loaded, rng)
    verified_at = clock()
    stages = (("load", loaded_at - start), ("verify", verified_at - loaded_at))
    if not evaluator.is_timed:
        return Evaluation(verdict, None, stages)
    before_timing()
    timing_from = clock()
    measurement = evaluator.measure(problem, loaded, effort, rng)
    return Evaluation(verdict, measurement, (*stages, ("measure", clock() - timing_from)))
