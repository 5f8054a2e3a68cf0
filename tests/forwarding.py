"""A target that another one stands behind, to be changed where a test needs that."""

import numpy as np

from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict
from tuner.core.target import AbstractTarget, Artifact, Effort, Script


class ForwardingTarget(AbstractTarget):
    """Does everything by another target."""

    def __init__(self, inner: AbstractTarget) -> None:
        self._inner = inner

    def compile(self, problem: Problem, script: Script) -> Artifact:
        return self._inner.compile(problem, script)

    def load(self, problem: Problem, artifact: Artifact) -> object:
        return self._inner.load(problem, artifact)

    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        return self._inner.verify(problem, loaded, rng)

    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        return self._inner.measure(problem, loaded, effort, rng)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        return self._inner.measure_together(problem, loaded, effort, rng)
