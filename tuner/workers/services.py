"""What the child processes serve: one compiles, the other judges and owns the machine while it times."""

from collections.abc import Callable, Iterator

import numpy as np

from tuner.errors import CandidateError, Stage
from tuner.evaluate import Judgement, judge
from tuner.problem import Problem
from tuner.record import Measurement
from tuner.target import AbstractJudge, AbstractTarget, Artifact, Effort, Script
from tuner.workers.protocol import Factory, ServiceSpec

TIMING = "timing"  # the Event before the clock matters: the parent quiets the machine, then lets go on

Announce = Callable[[str], None]
Environment = tuple[tuple[str, str | None], ...]


class CompileService:
    """Compiles with a target of its own."""

    def __init__(self, announce: Announce, target: Factory) -> None:
        self._target: AbstractTarget = target.build()

    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns the artifact. Raises CandidateError as the target does."""
        return self._target.compile(problem, script)


class JudgeService:
    """Loads, verifies and times with a judge of its own, which may be a whole target."""

    def __init__(self, announce: Announce, target: Factory) -> None:
        self._announce = announce
        self._target: AbstractJudge = target.build()

    def judge(self, problem: Problem, artifact: Artifact, effort: Effort, seed: int) -> Judgement:
        """Returns verdict and time of one artifact. Raises CandidateError as the target does."""
        rng = np.random.default_rng(seed)
        return judge(self._target, problem, artifact, effort, rng, lambda: self._announce(TIMING))

    def finals(
        self, problem: Problem, artifacts: tuple[Artifact, ...], effort: Effort, seed: int
    ) -> tuple[Measurement | None, ...]:
        """Times artifacts interleaved; None for one that does not load."""
        return time_together(
            self._target,
            problem,
            artifacts,
            effort,
            np.random.default_rng(seed),
            lambda: self._announce(TIMING),
        )


def time_together(
    target: AbstractJudge,
    problem: Problem,
    artifacts: tuple[Artifact, ...],
    effort: Effort,
    rng: np.random.Generator,
    before_timing: Callable[[], None] = lambda: None,
) -> tuple[Measurement | None, ...]:
    """Loads artifacts and times them interleaved; None for one that does not load."""
    loaded = tuple(_loadable(target, problem, artifacts))
    if not loaded:
        return (None,) * len(artifacts)
    before_timing()
    times = target.measure_together(problem, tuple(kernel for _, kernel in loaded), effort, rng)
    by_index = dict(zip((index for index, _ in loaded), times, strict=True))
    return tuple(by_index.get(index) for index in range(len(artifacts)))


def compile_spec(target: Factory, environment: Environment = ()) -> ServiceSpec:
    """Describes a child that compiles with the target that the factory builds."""
    return ServiceSpec("compile", Factory("tuner.workers.services:CompileService", (target,)), environment)


def judge_spec(target: Factory, environment: Environment = ()) -> ServiceSpec:
    """Describes a child that judges with the target that the factory builds."""
    return ServiceSpec("judge", Factory("tuner.workers.services:JudgeService", (target,)), environment)


def _loadable(
    target: AbstractJudge, problem: Problem, artifacts: tuple[Artifact, ...]
) -> Iterator[tuple[int, object]]:
    for index, artifact in enumerate(artifacts):
        try:
            loaded = target.load(problem, artifact)
        except CandidateError as error:
            if error.stage is Stage.RUN:  # it took more than itself with it: a GPU's context
                raise
            continue
        yield index, loaded
