"""The abstract interfaces of a run: compiler, evaluator, baseline libraries, candidate runner, and sampler.

The sampler proposes configurations. The candidate runner has the compiler turn each one's script into an
artifact, and has the evaluator verify and time the artifact.
"""

import abc
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import Failure
from tuner.core.problem import Problem
from tuner.core.records import Measurement, Record, Verdict
from tuner.core.runs import Baseline, LibraryTime

if TYPE_CHECKING:
    import numpy as np


class AbstractSampler(abc.ABC):
    """Proposes configurations of a feasible set; ``row`` is a configuration's index, ``0 .. rows - 1``.

    Each session of a run builds a sampler in the tuner's process; the session's loop,
    ``tuner.tuning.tuning_session``, makes all calls from one thread. In the life of a trial::

        row = ask(number)      # before the proposal is stored and started
        ...                    # asks of the next numbers, while at most workers + 1 rows are pending
        tell(row, seconds)     # once for each ask and in their order: of the row that is pending longest

    A session that resumes a run calls ``replay(number, row)`` in place of ``ask(number)`` while there are
    stored trials, and ``tell`` with their outcomes in the same places. A failed trial is reported by ``tell``
    with None: no candidate makes a call raise. What a sampler raises ends the session; stored trials stay.

    Contract, checked by one conformance suite over all samplers: a row is never proposed twice; ``ask``
    returns None only when every row was proposed, and the session still calls it after each remaining
    ``tell``; equal seeds and equal histories of asks and tells give equal proposals: randomness comes from
    ``np.random.default_rng((seed, number))`` alone, so a resumed run proposes what an uninterrupted run
    would. A pending row counts as slow (constant liar: Ginsbourger et al., 2010,
    https://doi.org/10.1007/978-3-642-10701-6_6).
    """

    @abc.abstractmethod
    def ask(self, number: int) -> int | None:
        """Returns the row to try as trial ``number`` (0, 1, ...); None when every row was proposed."""

    @abc.abstractmethod
    def tell(self, row: int, value: float | None) -> None:
        """Reports the seconds per call of a pending row, None for no time.

        Raises ValueError if ``row`` is not pending.
        """

    @abc.abstractmethod
    def replay(self, number: int, row: int) -> None:
        """Repeats a proposal of an earlier session of the run, as if ``ask(number)`` had returned ``row``.

        Raises ValueError for a row outside of the set or proposed before: a defect of the caller.
        """


@dataclass(frozen=True)
class Partition:
    """The part of C that one thread computes: a rectangle, its function, and the matrices of a batch."""

    entry: str  # function that computes the rectangle of one matrix
    row: int  # first row of C
    column: int  # first column of C
    m: int  # rows
    n: int  # columns
    first: int = 0  # first matrix of the batch
    matrices: int = 1  # number of matrices

    @property
    def called(self) -> str:
        """Returns the name of the function that computes this part of C, for all of its matrices."""
        if self.matrices == 1:
            return self.entry
        return f"{self.entry}_x{self.matrices}"


@dataclass(frozen=True)
class Script:
    """A transform script with all knob values filled in: plain MLIR text, and its hash.

    A script for several threads lists its partitions in a comment, see
    ``tuner.payload.partitions.partitions_in``.
    """

    text: str
    sha256: str  # of ``text``

    @classmethod
    def of(cls, text: str) -> "Script":
        return cls(text, hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True)
class Artifact:
    """The compiled code of a script, ready to load. Different scripts may give equal code."""

    code: KernelCode
    sha256: str  # of what runs: text and ``partitions``, or binary and launches
    # CPU: thread partitions of C; their calls compute the whole problem
    partitions: tuple[Partition, ...] = ()
    stage_s: tuple[tuple[str, float], ...] = ()  # (stage, seconds) of the compilation
    refusal: Failure | None = None  # why the code is not loaded, known from its resources alone


@dataclass(frozen=True)
class Effort:
    """How long a candidate is timed: seconds, samples, and the time above which it is early-stopped."""

    budget_s: float = 0.08  # seconds of timed calls
    min_samples: int = 5
    max_samples: int = 60
    stop_above_s: float | None = None  # a candidate whose first samples are all slower is early-stopped
    has_offsets: bool = False  # CPU: the fastest kernels are timed at other alignments as well
    has_extremes: bool = False  # CPU: a kernel that is timed alone is verified on extreme inputs as well
    # of all that is timed together, loading included: then six samples of each are enough; None: no limit
    within_s: float | None = None

    def after(self, seconds: float) -> "Effort":
        """Returns the effort with ``within_s`` reduced by ``seconds``, to 0 at least.

        Unchanged if ``within_s`` is None.
        """
        if self.within_s is None:
            return self
        return replace(self, within_s=max(0.0, self.within_s - seconds))


class AbstractCompiler(abc.ABC):
    """Turns scripts into artifacts for one target. Final subclasses only; reads no environment.

    Each compile worker builds a compiler and calls it for one script after another; workers share no state.
    An exception other than CandidateError, a crash and a hang are failures of the candidate, at stage
    COMPILE; other child processes compile the other scripts meanwhile. ``tuner.targets.target`` says
    which compiler a target has.
    """

    @abc.abstractmethod
    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns the compiled code: the payload of ``problem``, transformed by the script, then lowered.

        Raises CandidateError of stage BIND, COMPILE or RESOURCES.
        """


class AbstractEvaluator(abc.ABC):
    """Verifies and times artifacts on one target. Final subclasses only; needs no compiler.

    The one child process that owns the machine builds an evaluator (``tuner.runtime.workers.services``, for a
    bundle ``tuner.elsewhere.bundle.gpu_child``) and calls it from one thread. In the life of a trial::

        loaded = load(problem, artifact)            # not of an artifact that is refused, or known
        verify(problem, loaded, rng)
        measure(problem, loaded, effort, rng)       # once the compile workers stand still; if ``is_timed``

    and at the end of a run, with the top trials, each loaded anew::

        measure_together(problem, loaded, effort, rng)  # again with fewer where it fails

    Arrays of a problem may be kept for later calls; runs of a campaign share the child process. Each method
    raises CandidateError when the candidate fails; any other exception, a crash and a hang become failures of
    stage RUN as well. After a failure of stage RUN, VERIFY or MEASURE the process is ended, and a new process
    builds another evaluator. Results of ``load`` are opaque to callers: only the evaluator that returned one
    looks into it.
    """

    is_timed: bool = True  # False: candidates are only verified; nothing is timed or ranked

    @abc.abstractmethod
    def load(self, problem: Problem, artifact: Artifact) -> object:
        """Loads compiled code into this process; returns what ``verify`` and ``measure`` take as ``loaded``.

        Raises CandidateError of stage LOAD; RUN where the device is unusable.
        """

    @abc.abstractmethod
    def verify(self, problem: Problem, loaded: object, rng: "np.random.Generator") -> Verdict:
        """Runs a loaded artifact on inputs drawn from ``rng``; compares C with the float64 reference.

        Compares every element of C; a simulator may run and compare only a sample of the thread blocks, a
        replay returns the recorded verdict, and code that this processor cannot run is not compared. Raises
        CandidateError of stage VERIFY for a wrong result, RUN where running it fails.
        """

    @abc.abstractmethod
    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: "np.random.Generator"
    ) -> Measurement:
        """Times a loaded artifact on this machine, while tuner runs nothing else here.

        Raises CandidateError of stage MEASURE where timing fails, VERIFY where a timed call computes a wrong
        result or is faster than the hardware can be, RUN where the candidate leaves threads running or makes
        the device unusable. Like ``measure_together``, never called where ``is_timed`` is False.
        """

    @abc.abstractmethod
    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: "np.random.Generator"
    ) -> tuple[Measurement, ...]:
        """Times several loaded artifacts interleaved, sample by sample, in shuffled order.

        ``loaded``: results of ``load``, and ``LoadedLibrary.work`` of baselines; the times are in their
        order. The evaluator of a CPU verifies on extreme inputs first, whatever ``effort`` says. Raises
        CandidateError of stage MEASURE, VERIFY or RUN; GroupMemberError where it is known which kernel fails.
        """


def never() -> bool:
    """Returns False: the default of ``LoadedLibrary.has_ended``, for a library without its own process."""
    return False


@dataclass(frozen=True, eq=False)
class LoadedLibrary:
    """A baseline library with its verified matmul of a problem, or the reason why it has none."""

    library: str  # "openblas", "mkl", "cublas"
    name: str  # with version and kernel; "" where it failed before they were known
    work: object = None  # as ``AbstractEvaluator.measure_together`` takes it; None: it failed
    failure: str = ""  # one line; "": it can be timed
    has_ended: Callable[[], bool] = never  # True: its own process has ended, and the candidates are unharmed


class AbstractBaselineSource(abc.ABC):
    """An evaluator that can time baseline libraries, such as cuBLAS, interleaved with candidates."""

    baseline_threads: int = 0  # threads of the library; 0: on a GPU

    @abc.abstractmethod
    def load_baselines(self, problem: Problem, rng: "np.random.Generator") -> tuple[LoadedLibrary, ...]:
        """Returns the libraries to compare with; the fastest of several is the baseline; () for a fusion.

        A library that failed may be in the result, with its ``failure``. Raises TunerError where no library
        can be loaded or its result is wrong; CandidateError of stage RUN if the failure also made the
        candidates unusable.
        """


def fastest_baseline(
    timed: Sequence[tuple[str, Baseline]], failed: Sequence[LibraryTime] = ()
) -> Baseline | None:
    """Returns the baseline of the least median time; None where no library was timed.

    ``timed``: (library, time). Of several libraries the result lists all: the fastest first, ``failed`` last.
    """
    if not timed:
        return None
    ranked = sorted(timed, key=lambda library_time: library_time[1].measurement.median_s)
    fastest = ranked[0][1]
    if len(timed) + len(failed) == 1:
        return fastest
    return replace(fastest, libraries=(*starmap(_time, ranked), *failed))


def _time(library: str, baseline: Baseline) -> LibraryTime:
    measurement = baseline.measurement
    return LibraryTime(library, baseline.name, measurement.median_s, measurement.interval_s)


@dataclass(frozen=True)
class BoundRecord:
    """The result of one candidate: its record, its bound script, and its compiled artifact where kept."""

    record: Record
    script: Script  # empty where binding failed
    artifact: Artifact | None = None  # None: not kept; the final re-measurement compiles the script again


@dataclass(frozen=True)
class FinalTimes:
    """Times of the final re-measurement of a run: of its top trials, and of the baseline if it was timed."""

    # one per trial: its time, why it failed, or None where another trial's failure ended the timing
    times: tuple[Measurement | Failure | None, ...]
    baseline: Baseline | None = None  # timed interleaved with the trials; None: not timed
    reason: str = ""  # why a trial or the baseline has no time; "" where all were timed

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Returns the failures of trials, in the order of the trials."""
        return tuple(time for time in self.times if isinstance(time, Failure))

    @property
    def measured(self) -> tuple[Measurement | None, ...]:
        """Returns the time of each trial; None where it failed or was not timed."""
        return tuple(time if isinstance(time, Measurement) else None for time in self.times)


class AbstractRunner(abc.ABC):
    """Compiles, verifies and times candidates; returns records in the order in which candidates were started.

    Each session of a run builds a runner in the tuner's process; ``tuner check`` builds one per kernel that
    it times. The thread that built the runner makes all calls: child processes die with that
    thread. In the life of a session::

        start(number, candidate, effort)   # each trial without a stored outcome, once its proposal is stored
        finish()                      # once for each start; up to workers + 1 are started and not finished
        remeasure(top_trials, effort) # when every start is finished; by a check repeatedly
        close()                       # once, whatever happened before

    A candidate that crashes, hangs, is wrong or does not compile gives a record with a Failure; no exception
    is raised for it. ``start``, ``finish`` and ``remeasure`` raise TunerError where a child process cannot
    start, ``finish`` and ``remeasure`` raise KeyboardInterrupt while they wait; after such an exception only
    ``close`` is called.
    """

    @abc.abstractmethod
    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        """Starts trial ``number``: binds its candidate to a script and queues the script for compilation.

        No trial of this number may be started and not finished. Does not wait; ``finish`` returns the result.
        The random inputs of the evaluation follow from ``number`` and the run's seed, whichever process
        evaluates. ``effort`` limits the timing; its ``stop_above_s`` follows from what was known when the
        trial was proposed.
        """

    @abc.abstractmethod
    def finish(self) -> BoundRecord:
        """Waits for the earliest started candidate that no ``finish`` has returned; returns its result."""

    @abc.abstractmethod
    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        """Final re-measurement: times the top trials again, interleaved, with the baseline where possible.

        Compiles a trial's script again where its artifact was not kept. In the result, a trial that no longer
        works has its failure in place of its time. Where a failure shows that the code is wrong, no trial has
        a time: the caller asks again without the wrong ones.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends every child process that the runner started. Work that is queued in a fleet continues."""


FINAL_EFFORT = Effort(  # per candidate
    budget_s=0.3, min_samples=15, max_samples=200, has_offsets=True, has_extremes=True
)
