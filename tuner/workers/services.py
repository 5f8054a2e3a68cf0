"""What the child processes serve: one compiles, the other judges and owns the machine while it times."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tuner.core.bench import FinalTimes
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target import AbstractBaselineSource, AbstractJudge, AbstractTarget, Artifact, Effort, Script
from tuner.workers.group_timing import Group
from tuner.workers.judge import Judgement, judge
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

    def finals(self, problem: Problem, group: Group, effort: Effort, seed: int) -> FinalTimes:
        """Times a group interleaved; None for an artifact that does not load."""
        return time_together(
            self._target,
            problem,
            group,
            effort,
            np.random.default_rng(seed),
            lambda: self._announce(TIMING),
        )


def time_together(
    target: AbstractJudge,
    problem: Problem,
    group: Group,
    effort: Effort,
    rng: np.random.Generator,
    before_timing: Callable[[], None] = lambda: None,
) -> FinalTimes:
    """Loads a group and times it interleaved; None for an artifact that does not load."""
    loaded = dict(_loadable(target, problem, group.artifacts))
    if not loaded:
        return FinalTimes((None,) * len(group.artifacts))
    library = _library(target, problem, rng) if group.has_baseline else None
    works = (*loaded.values(), *([library.work] if library else []))
    before_timing()
    times = target.measure_together(problem, works, effort, rng)
    by_index = dict(zip(loaded, times, strict=False))  # the library's is the last
    baseline = None
    if library is not None:
        baseline = Baseline(library.name, library.threads, times[-1], is_interleaved=True)
    return FinalTimes(tuple(by_index.get(index) for index in range(len(group.artifacts))), baseline)


def compile_spec(target: Factory, environment: Environment = ()) -> ServiceSpec:
    """Describes a child that compiles with the target that the factory builds."""
    return ServiceSpec("compile", Factory("tuner.workers.services:CompileService", (target,)), environment)


def judge_spec(target: Factory, environment: Environment = ()) -> ServiceSpec:
    """Describes a child that judges with the target that the factory builds."""
    return ServiceSpec("judge", Factory("tuner.workers.services:JudgeService", (target,)), environment)


@dataclass(frozen=True, eq=False)
class _Library:
    """A baseline that is ready to be timed."""

    name: str
    threads: int
    work: object


def _library(target: AbstractJudge, problem: Problem, rng: np.random.Generator) -> _Library | None:
    """Returns the baseline; without one the others are timed all the same."""
    if not isinstance(target, AbstractBaselineSource):
        return None
    try:
        name, work = target.load_baseline(problem, rng)
        return _Library(name, target.baseline_threads, work)
    except CandidateError as error:
        if error.stage is Stage.RUN:  # the others would fail as well
            raise
    except TunerError:
        pass  # who measures it alone, for want of this, is told why there is none
    return None


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
