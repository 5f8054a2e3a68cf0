"""A fake target that is watched as a CPU is: times follow from the knob x, and from the day."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.fakes import FakeTarget, bind, candidate
from tests.tuning import fakes
from tuner.core.interfaces import AbstractBaselineSource, AbstractRunner, Effort, LoadedLibrary
from tuner.core.problem import Problem
from tuner.core.records import HostConditions, Measurement
from tuner.runtime.workers.runner import RunnerOrder, TrialRunner
from tuner.targets.backends import Backends
from tuner.targets.target import RunnerSettings

LIBRARY_X = 6  # twice as slow as the best
ANCHOR_S = 3e-4


@dataclass(frozen=True)
class Day:
    """How many times as long as usual things take, and what else runs."""

    kernel: float = 1.0
    library: float = 1.0
    anchor: float = 1.0
    waited: float = 0.0
    disturbed_every: int = 1  # of those sessions that a load disturbs
    spread: float = 0.0
    library_name: str = "FakeBLAS 1.0"


class WatchedTarget(FakeTarget, AbstractBaselineSource):
    """Has a library and a reference kernel, as a CPU."""

    def __init__(self, day: Day) -> None:
        self.day = day
        self.sessions = 0

    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        code = self.compile(problem, bind(candidate(LIBRARY_X)))
        return (LoadedLibrary("fake", self.day.library_name, (self.load(problem, code),)),)

    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        self.sessions += 1
        kernels = tuple(one[0] if isinstance(one, tuple) else one for one in loaded)
        times = super().measure_together(problem, kernels, effort, rng)
        waited = self.day.waited if self.sessions % self.day.disturbed_every == 0 else 0.0
        reference_s = ANCHOR_S * self.day.anchor
        host = HostConditions(0.5, waited, waited, 0.0, 0.0, reference_s, 0.0, reference_s)
        level = math.exp(rng.normal(0, self.day.spread))
        scaled = []
        for time, one in zip(times, loaded, strict=True):
            factor = self.day.library if isinstance(one, tuple) else self.day.kernel * level
            median_s, samples_s = time.median_s * factor, tuple(each * factor for each in time.samples_s)
            interval_s = median_s, median_s
            scaled.append(
                replace(time, samples_s=samples_s, median_s=median_s, interval_s=interval_s, host=host)
            )
        return tuple(scaled)


def backends(day: Day, **changes: Any) -> Backends:
    def runner(order: RunnerOrder, how: RunnerSettings) -> AbstractRunner:
        return TrialRunner.local(order, FakeTarget(), WatchedTarget(day), how.seed)

    return fakes.backends(runner=runner, **changes)
