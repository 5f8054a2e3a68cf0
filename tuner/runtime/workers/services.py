"""The services of child processes: a compiler, or an evaluator that has the machine alone while it times.

Also the final re-measurement, which times several artifacts and the baseline libraries interleaved.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from tuner.core import progress
from tuner.core.errors import RAN, CandidateError, Failure, GroupMemberError, Stage, TunerError
from tuner.core.interfaces import (
    AbstractBaselineSource,
    AbstractEvaluator,
    Artifact,
    BoundRecord,
    Effort,
    FinalTimes,
    LoadedLibrary,
    Script,
    fastest_baseline,
)
from tuner.core.problem import Problem
from tuner.core.progress import step
from tuner.core.records import Measurement
from tuner.core.runs import Baseline, LibraryTime
from tuner.runtime.workers.protocol import Factory, Reply, ServiceSpec

# steps
LOADING = "loading of the code"
VERIFICATION = "verification of the kernel"
TIMING = "timing"  # the Event before timing: the parent quiets the machine, then sends GoAhead
Announce = Callable[[str], None]
Environment = tuple[tuple[str, str | None], ...]
# A machine may export these variables for other reasons; OpenBLAS then runs at half its speed.
CLEARED = (
    *("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_VERBOSE", "OMP_PROC_BIND", "OMP_PLACES"),
    *("MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_THREADING_LAYER", "MKL_VERBOSE"),
    *("MKL_INTERFACE_LAYER", "KMP_AFFINITY", "GOMP_CPU_AFFINITY", "BLIS_ARCH_TYPE"),
    *("DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "DNNL_VERBOSE", "ONEDNN_VERBOSE"),
)
THREAD_COUNTS = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS"),
    *("BLIS_NUM_THREADS", "DPCPP_CPU_NUM_CUS"),
)
# These variables make cuBLAS compute in other types, or slower.
GPU_CLEARED = (
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLASLT_WORKSPACE_SIZE",
)


def work_seed(seed: int, number: int) -> int:
    """Returns the random seed of a trial or, for a negative ``number``, of a timed group.

    Computed from the run's ``seed``.
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
) -> Reply:
    """Loads, verifies and times an artifact in this process; returns a Reply.

    Its value is the Measurement, or the Verdict of an evaluator without a clock. Calls ``before_timing``
    before it times. Raises CandidateError of stage LOAD, VERIFY, RUN or MEASURE.
    """
    start = clock()
    with step(LOADING):
        loaded = evaluator.load(problem, artifact)
    loaded_at = clock()
    with step(VERIFICATION):
        verdict = evaluator.verify(problem, loaded, rng)
    verified_at = clock()
    stages = (("load", loaded_at - start), ("verify", verified_at - loaded_at))
    if not evaluator.is_timed:
        return Reply(verdict, stage_s=stages)
    before_timing()
    timing_from = clock()
    with step(progress.TIMING):
        measurement = evaluator.measure(problem, loaded, effort, rng)
    return Reply(measurement, verdict=verdict, stage_s=(*stages, ("measure", clock() - timing_from)))


@dataclass(frozen=True)
class Group:
    """Artifacts that are timed interleaved, and whether the baseline is timed with them."""

    artifacts: tuple[Artifact, ...]
    has_baseline: bool = False  # times the baseline too, if the evaluator has one that works

    @property
    def size(self) -> int:
        """Returns the number of artifacts, plus one for the baseline, of one library or several."""
        return len(self.artifacts) + self.has_baseline


@final
class RemeasurementRounds:
    """The final re-measurements of one runner; each timed group of artifacts gets another random seed."""

    def __init__(
        self,
        seed: int,  # of the run
        compiled: Callable[[tuple[Script, ...]], Sequence[Artifact | Failure | None]],
        timed: Callable[[Group, Effort, int, float | None], FinalTimes | Failure],  # seed, seconds per call
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seed = seed
        self._clock = clock
        self._compiled = compiled
        self._timed = timed
        self._asked = 0  # groups timed so far

    def times(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Times trials interleaved, with the baseline; returns the times in the order of ``top_trials``.

        Trials without an artifact are compiled again. A trial that does not compile or run any more has its
        failure in place of a time.
        """
        began_s = self._clock()
        bare = tuple(dict.fromkeys(trial.script for trial in top_trials if trial.artifact is None))
        made = dict(zip(bare, self._compiled(bare), strict=True))
        artifacts = tuple(trial.artifact or made.get(trial.script) for trial in top_trials)
        medians_s = [trial.record.median_s for trial in top_trials if trial.record.median_s is not None]
        slowest_s = max(medians_s, default=None)

        def together(group: Group) -> FinalTimes | Failure:
            self._asked += 1
            left = effort.after(self._clock() - began_s)
            return self._timed(group, left, work_seed(self._seed, -self._asked), slowest_s)

        return time_finals(artifacts, together)


def time_finals(
    artifacts: tuple[Artifact | Failure | None, ...], together: Callable[[Group], FinalTimes | Failure]
) -> FinalTimes:
    """Times artifacts together with the baseline; if that fails, those that run alone, without the baseline.

    Returns the times in the order of ``artifacts``, in which a Failure or None stands for a trial that did
    not compile. ``together`` times a group. If one fails alone in a way that shows that its code is wrong,
    the others are not timed together again.
    """
    present = {index: artifact for index, artifact in enumerate(artifacts) if isinstance(artifact, Artifact)}
    times: list[Measurement | Failure | None] = [
        None if isinstance(artifact, Artifact) else artifact for artifact in artifacts
    ]
    if not present:
        return FinalTimes(tuple(times), reason="nothing compiles any more" if artifacts else "")
    outcome = together(Group(tuple(present.values()), has_baseline=True))
    reason = ""
    if isinstance(outcome, Failure):
        reason = outcome.reason
        failures = _failures_alone(present, together)
        for index, failure in failures.items():
            times[index] = failure
        if any(failure.shows_a_defect for failure in failures.values()):
            return FinalTimes(tuple(times), reason=reason)
        present = {index: artifact for index, artifact in present.items() if index not in failures}
        outcome = together(Group(tuple(present.values()))) if present else outcome
    if isinstance(outcome, Failure):  # each artifact fails alone, or only all of them together
        return FinalTimes(tuple(times), reason=reason)
    for index, time_ in zip(present, outcome.times, strict=True):  # equal artifacts (A/A) have separate times
        times[index] = time_
    return FinalTimes(tuple(times), outcome.baseline, reason or outcome.reason)


def _failures_alone(
    artifacts: dict[int, Artifact], together: Callable[[Group], FinalTimes | Failure]
) -> dict[int, Failure]:
    """Times each artifact alone; returns artifact's index -> failure, for those that fail."""
    failures: dict[int, Failure] = {}
    for index, artifact in artifacts.items():
        outcome = together(Group((artifact,)))
        if isinstance(outcome, FinalTimes):
            failures_alone = outcome.failures
        else:
            failures_alone = (outcome,)
        if failures_alone:
            failures[index] = failures_alone[0]
    return failures


class EvaluationService:
    """The service of the child process that loads, verifies and times artifacts."""

    def __init__(self, announce: Announce, evaluator: Factory) -> None:
        self._announce = announce
        self._evaluator: AbstractEvaluator = evaluator.build()

    def evaluate(self, problem: Problem, artifact: Artifact, effort: Effort, seed: int) -> Reply:
        """Loads, verifies and times an artifact as ``evaluate`` does, with inputs drawn from ``seed``.

        Sends an Event before timing. Raises CandidateError: LOAD for code that does not load, VERIFY for a
        wrong result, RUN for code that cannot run, MEASURE where timing fails.
        """
        rng = np.random.default_rng(seed)
        return evaluate(self._evaluator, problem, artifact, effort, rng, lambda: self._announce(TIMING))

    def remeasure(self, problem: Problem, group: Group, effort: Effort, seed: int) -> FinalTimes:
        """Verifies and times a group's artifacts interleaved, with inputs drawn from ``seed``.

        Sends an Event before timing. Raises CandidateError for a failure that cannot be assigned to one
        artifact.
        """
        rng = np.random.default_rng(seed)
        return time_together(self._evaluator, problem, group, effort, rng, lambda: self._announce(TIMING))


def time_together(
    evaluator: AbstractEvaluator,
    problem: Problem,
    group: Group,
    effort: Effort,
    rng: np.random.Generator,
    before_timing: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> FinalTimes:
    """Times artifacts interleaved with the baseline libraries, and returns the fastest of these as baseline.

    An artifact that does not load has its failure as result. Ends at the first failure in timing that can be
    assigned to one artifact: the others then have no time. Raises CandidateError for other failures.
    ``before_timing`` is called once, before the timing; never if no artifact loads. ``clock`` gives seconds.
    """
    began_s = clock()
    times: list[Measurement | Failure | None] = [None] * len(group.artifacts)
    loaded: dict[int, object] = {}  # by index
    for index, artifact in enumerate(group.artifacts):
        try:
            with step(LOADING):
                loaded[index] = evaluator.load(problem, artifact)
        except CandidateError as error:
            if error.stage is Stage.RUN:  # it has destroyed more than itself: a GPU's context
                raise
            times[index] = error.failure
    if not loaded:
        return FinalTimes(tuple(times))
    libraries = _libraries(evaluator, problem, rng) if group.has_baseline else ()
    before_timing()

    def measured(libraries: tuple[LoadedLibrary, ...]) -> tuple[Measurement, ...]:
        works = (*loaded.values(), *(library.work for library in libraries))
        with step(progress.TIMING):
            return evaluator.measure_together(problem, works, effort.after(clock() - began_s), rng)

    try:
        usable, failed, measurements = _timed_with(libraries, measured)
    except GroupMemberError as error:
        times[list(loaded)[error.index]] = error.failure
        return FinalTimes(tuple(times), reason=error.reason)
    for index, measurement in zip(loaded, measurements, strict=False):  # the libraries' times are the last
        times[index] = measurement
    # 0: on a GPU, or the evaluator has no libraries
    threads = evaluator.baseline_threads if isinstance(evaluator, AbstractBaselineSource) else 0
    timed = [
        (library.library, Baseline(library.name, threads, time, is_interleaved=True))
        for library, time in zip(usable, measurements[len(loaded) :], strict=True)
    ]
    return FinalTimes(tuple(times), fastest_baseline(timed, failed))


def is_of_a_broken_process(value: object) -> bool:
    """Returns whether a reply has a failure of code that ran, which may have damaged its process."""
    failures = value.failures if isinstance(value, FinalTimes) else (value,)
    return any(isinstance(failure, Failure) and failure.stage in RAN for failure in failures)


def _timed_with(
    libraries: tuple[LoadedLibrary, ...],
    measured: Callable[[tuple[LoadedLibrary, ...]], tuple[Measurement, ...]],
) -> tuple[tuple[LoadedLibrary, ...], tuple[LibraryTime, ...], tuple[Measurement, ...]]:
    """Returns (libraries that were timed, libraries that failed, all times).

    If the process of a library ends while the group is timed, times the group again without that library.
    """
    failed = [
        LibraryTime(library.library, library.name, failure=library.failure)
        for library in libraries
        if library.failure
    ]
    usable = tuple(library for library in libraries if not library.failure)
    while True:
        try:
            return usable, tuple(failed), measured(usable)
        except CandidateError as error:
            ended = [library for library in usable if library.has_ended()]
            if not ended:
                raise
            failed += [LibraryTime(library.library, library.name, failure=error.reason) for library in ended]
            usable = tuple(library for library in usable if library not in ended)


def compile_spec(compiler: Factory, environment: Environment = ()) -> ServiceSpec:
    """Returns the ServiceSpec of a child process that compiles with the compiler that the factory builds."""
    return ServiceSpec("compile", compiler, environment)


def evaluation_spec(evaluator: Factory, environment: Environment = ()) -> ServiceSpec:
    """Returns the ServiceSpec of a child process that verifies and times with the factory's evaluator."""
    factory = Factory("tuner.runtime.workers.services:EvaluationService", (evaluator,))
    return ServiceSpec("evaluate", factory, environment, announces=True)


def _libraries(
    evaluator: AbstractEvaluator, problem: Problem, rng: np.random.Generator
) -> tuple[LoadedLibrary, ...]:
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


def library_environment(threads: int) -> Environment:
    """Returns environment changes (value None: unset) with which a child's BLAS uses ``threads`` threads."""
    cleared = tuple((name, None) for name in CLEARED)
    return (*cleared, *((name, str(threads)) for name in THREAD_COUNTS))


def gpu_library_environment() -> Environment:
    """Returns environment changes, (name, None) to unset, with which a child's cuBLAS uses its defaults."""
    return tuple((name, None) for name in GPU_CLEARED)
