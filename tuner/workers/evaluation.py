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
    """Verdict and time of a correct artifact, and the seconds that each stage took."""

    verdict: Verdict
    measurement: Measurement | None  # None: the evaluator has no clock
    stage_s: tuple[tuple[str, float], ...]


def work_seed(seed: int, number: int) -> int:
    """Returns the random seed of one piece of work of a run; ``number``: of the trial, or below 0."""
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
    """Loads, verifies and, where the evaluator has a clock, times an artifact.

    ``before_timing`` is called right before timing, so that a caller can quiet the machine. Raises
    CandidateError for an artifact that fails or is wrong.
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
