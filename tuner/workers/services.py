"""The services of child processes: a compiler, or an evaluator that owns the machine while timing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tuner.core.bench import FinalTimes
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.problem import Problem
from tuner.core.runs import Baseline
from tuner.core.target import (
    AbstractBaselineSource,
    AbstractEvaluator,
    Artifact,
    Effort,
)
from tuner.workers.evaluation import Evaluation, evaluate
from tuner.workers.group_timing import Group
from tuner.workers.protocol import Factory, ServiceSpec

TIMING = "timing"  # the Event before timing: the parent quiets the machine, then sends GoAhead

Announce = Callable[[str], None]
Environment = tuple[tuple[str, str | None], ...]


class EvaluationService:
    """The service of the child process that loads, verifies and times artifacts."""

    def __init__(self, announce: Announce, evaluator: Factory) -> None:
        self._announce = announce
        self._evaluator: AbstractEvaluator = evaluator.build()

    def evaluate(self, problem: Problem, artifact: Artifact, effort: Effort, seed: int) -> Evaluation:
        """Returns the verdict on one artifact and, if the target times candidates, its time.

        ``seed``: of the random inputs. Sends an Event before timing. Raises CandidateError for an artifact
        that fails or whose result is wrong.
        """
        rng = np.random.default_rng(seed)
        return evaluate(self._evaluator, problem, artifact, effort, rng, lambda: self._announce(TIMING))

    def remeasure(self, problem: Problem, group: Group, effort: Effort, seed: int) -> FinalTimes:
        """Returns the times of a group's artifacts, timed interleaved; None for one that does not load.

        ``seed``: of the random inputs. Sends an Event before timing. Raises CandidateError where timing
        fails.
        """
        return time_together(
            self._evaluator,
            problem,
            group,
            effort,
            np.random.default_rng(seed),
            lambda: self._announce(TIMING),
        )


def time_together(
    evaluator: AbstractEvaluator,
    problem: Problem,
    group: Group,
    effort: Effort,
    rng: np.random.Generator,
    before_timing: Callable[[], None] = lambda: None,
) -> FinalTimes:
    """Loads the artifacts of ``group`` and times them interleaved, with the baseline if the group has one.

    The result has one entry per artifact, in order: None for one that does not load. If none loads, nothing
    is timed, not even the baseline. ``before_timing`` is called after loading, right before the first sample.
    Raises CandidateError where timing fails, or a failed load has made the others unusable.
    """
    loaded = dict(_loadable(evaluator, problem, group.artifacts))
    if not loaded:
        return FinalTimes((None,) * len(group.artifacts))
    library = _library(evaluator, problem, rng) if group.has_baseline else None
    works = (*loaded.values(), *([library.work] if library else []))
    before_timing()
    times = evaluator.measure_together(problem, works, effort, rng)
    by_index = dict(zip(loaded, times, strict=False))  # the library's time is the last
    baseline = None
    if library is not None:
        baseline = Baseline(library.name, library.threads, times[-1], is_interleaved=True)
    return FinalTimes(tuple(by_index.get(index) for index in range(len(group.artifacts))), baseline)


def compile_spec(compiler: Factory, environment: Environment = ()) -> ServiceSpec:
    """Returns the description of a child process that compiles with the compiler that the factory builds."""
    return ServiceSpec("compile", compiler, environment)


def evaluation_spec(evaluator: Factory, environment: Environment = ()) -> ServiceSpec:
    """Returns the description of a child process that verifies and times with the factory's evaluator."""
    factory = Factory("tuner.workers.services:EvaluationService", (evaluator,))
    return ServiceSpec("evaluate", factory, environment, announces=True)


@dataclass(frozen=True, eq=False)
class _Library:
    """A loaded baseline that is ready to be timed."""

    name: str
    threads: int
    work: object


def _library(evaluator: AbstractEvaluator, problem: Problem, rng: np.random.Generator) -> _Library | None:
    """Returns the loaded baseline; None where there is none: the artifacts are timed without it."""
    if not isinstance(evaluator, AbstractBaselineSource):
        return None
    try:
        name, work = evaluator.load_baseline(problem, rng)
        return _Library(name, evaluator.baseline_threads, work)
    except CandidateError as error:
        if error.stage is Stage.RUN:  # the artifacts would fail as well
            raise
    except TunerError:
        pass  # the caller then measures the baseline alone, and that reports the reason
    return None


def _loadable(
    evaluator: AbstractEvaluator, problem: Problem, artifacts: tuple[Artifact, ...]
) -> Iterator[tuple[int, object]]:
    for index, artifact in enumerate(artifacts):
        try:
            loaded = evaluator.load(problem, artifact)
        except CandidateError as error:
            if error.stage is Stage.RUN:  # it has destroyed more than itself: a GPU's context
                raise
            continue
        yield index, loaded
