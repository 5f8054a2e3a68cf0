"""The services of child processes: a compiler, or an evaluator that owns the machine while timing."""

from collections.abc import Callable, Iterator

import numpy as np

from tuner.core.bench import FinalTimes
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.fastest_library import fastest_baseline
from tuner.core.problem import Problem
from tuner.core.record import Measurement
from tuner.core.runs import Baseline, LibraryTime
from tuner.core.target import (
    AbstractBaselineSource,
    AbstractEvaluator,
    Artifact,
    Effort,
    LoadedLibrary,
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
    is timed, not even the baseline. Of several libraries the fastest is the baseline; a library whose process
    ends is left out, and the others are timed anew. ``before_timing`` is called after loading, right before
    the first sample. Raises CandidateError where timing fails, or a failed load has made the others unusable.
    """
    loaded = dict(_loadable(evaluator, problem, group.artifacts))
    if not loaded:
        return FinalTimes((None,) * len(group.artifacts))
    libraries = _libraries(evaluator, problem, rng) if group.has_baseline else ()
    before_timing()

    def measured(libraries: tuple[LoadedLibrary, ...]) -> tuple[Measurement, ...]:
        works = (*loaded.values(), *(each.work for each in libraries))
        return evaluator.measure_together(problem, works, effort, rng)

    usable, failed, times = _timed_with(libraries, measured)
    by_index = dict(zip(loaded, times, strict=False))  # the libraries' times are the last
    timed = [
        (each.library, Baseline(each.name, _threads(evaluator), time, is_interleaved=True))
        for each, time in zip(usable, times[len(loaded) :], strict=True)
    ]
    kernels = tuple(by_index.get(index) for index in range(len(group.artifacts)))
    return FinalTimes(kernels, fastest_baseline(timed, failed))


def _timed_with(
    libraries: tuple[LoadedLibrary, ...],
    measured: Callable[[tuple[LoadedLibrary, ...]], tuple[Measurement, ...]],
) -> tuple[tuple[LoadedLibrary, ...], tuple[LibraryTime, ...], tuple[Measurement, ...]]:
    """Returns the libraries that were timed, those that failed with the reason, and the times of all.

    ``measured`` times kernels interleaved with libraries. It is called anew without libraries whose process
    has ended meanwhile. Raises its CandidateError where none has.
    """
    failed = [
        LibraryTime(each.library, each.name, failure=each.failure) for each in libraries if each.failure
    ]
    usable = tuple(each for each in libraries if not each.failure)
    while True:
        try:
            return usable, tuple(failed), measured(usable)
        except CandidateError as error:
            ended = [each for each in usable if each.has_ended()]
            if not ended:
                raise
            failed += [LibraryTime(each.library, each.name, failure=error.reason) for each in ended]
            usable = tuple(each for each in usable if each not in ended)


def compile_spec(compiler: Factory, environment: Environment = ()) -> ServiceSpec:
    """Returns the description of a child process that compiles with the compiler that the factory builds."""
    return ServiceSpec("compile", compiler, environment)


def evaluation_spec(evaluator: Factory, environment: Environment = ()) -> ServiceSpec:
    """Returns the description of a child process that verifies and times with the factory's evaluator."""
    factory = Factory("tuner.workers.services:EvaluationService", (evaluator,))
    return ServiceSpec("evaluate", factory, environment, announces=True)


def _threads(evaluator: AbstractEvaluator) -> int:
    """Returns the number of threads of an evaluator's libraries; 0: on a GPU, or it has none."""
    return evaluator.baseline_threads if isinstance(evaluator, AbstractBaselineSource) else 0


def _libraries(
    evaluator: AbstractEvaluator, problem: Problem, rng: np.random.Generator
) -> tuple[LoadedLibrary, ...]:
    """Returns the loaded baseline libraries; () where there is none: the artifacts are timed without."""
    if not isinstance(evaluator, AbstractBaselineSource):
        return ()
    try:
        return evaluator.load_baselines(problem, rng)
    except CandidateError as error:
        if error.stage is Stage.RUN:  # the artifacts would fail as well
            raise
    except TunerError:
        pass  # the caller then measures the baseline alone, and that reports the reason
    return ()


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
