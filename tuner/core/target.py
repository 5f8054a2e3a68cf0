"""The two ports of a target kind: a compiler (script -> artifact), and an evaluator (verifies and times)."""

import abc
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import Failure
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict


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
        return self.entry if self.matrices == 1 else f"{self.entry}_x{self.matrices}"


@dataclass(frozen=True)
class Script:
    """A transform script with all knob values filled in: plain MLIR text, and its hash.

    A script for several threads lists its partitions in a comment, see ``tuner.payload.cpu.partitions_in``.
    """

    text: str
    sha256: str  # of ``text``

    @classmethod
    def of(cls, text: str) -> "Script":
        """Returns the script of a text; computes the text's SHA-256."""
        return cls(text, hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True)
class Artifact:
    """The compiled code of a script, ready to load. Different scripts may give equal code."""

    host_code: str  # CPU: LLVM-dialect text; "" for a GPU, where ``program`` has the PTX
    sha256: str  # of what runs: ``host_code`` and ``panels``, or machine code and launches
    partitions: tuple[
        Partition, ...
    ] = ()  # CPU: thread partitions of C; their calls compute the whole problem
    stage_s: tuple[tuple[str, float], ...] = ()  # (stage, seconds) of the compilation
    program: KernelProgram | None = None  # GPU only
    refusal: Failure | None = None  # why the code is not loaded, known from its resources alone

    @property
    def code(self) -> str:
        """Returns the code as text: LLVM dialect for a CPU, PTX for a GPU."""
        return self.host_code if self.program is None else self.program.ptx


@dataclass(frozen=True)
class Effort:
    """How long a candidate is timed: seconds, samples, and the time above which it is early-stopped."""

    budget_s: float = 0.08  # seconds of timed calls
    min_samples: int = 5
    max_samples: int = 60
    stop_above_s: float | None = None  # a candidate whose first samples are all slower is early-stopped
    has_offsets: bool = False  # CPU: the fastest kernels are timed at other alignments as well


class AbstractCompiler(abc.ABC):
    """Turns scripts into artifacts for one target kind. Final subclasses only; reads no environment.

    Each compile worker builds a compiler and calls it for one script after another; workers share no state.
    An exception other than CandidateError, a crash and a hang are failures of the candidate, at stage
    COMPILE; other child processes compile the other scripts meanwhile. ``tuner.tuning.target_kind`` says
    which compiler a target kind has.
    """

    @abc.abstractmethod
    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Returns the compiled code: the payload of ``problem``, transformed by the script, then lowered.

        Raises CandidateError of stage BIND, COMPILE or RESOURCES.
        """


class AbstractEvaluator(abc.ABC):
    """Verifies and times artifacts on one target kind. Final subclasses only; needs no compiler.

    The one child process that owns the machine builds an evaluator (``tuner.workers.services``, for a bundle
    ``tuner.bundle.measure.service``) and calls it from one thread. In the life of a trial::

        loaded = load(problem, artifact)            # not of an artifact that is refused, or known
        verify(problem, loaded, rng)
        measure(problem, loaded, effort, rng)       # once the compile workers stand still; if ``is_timed``

    and at the end of a run, with the top trials, each loaded anew::

        measure_together(problem, works, effort, rng)   # again with fewer where it fails

    A child process serves one problem, so its arrays may be kept. Each method raises CandidateError when the
    candidate fails; any other exception, a crash and a hang become failures of stage RUN as well. After a
    failure of stage RUN, VERIFY or MEASURE the process is ended, and a new process builds another evaluator.
    Results of ``load`` are opaque to callers: only the evaluator that returned one looks into it.
    """

    is_timed: bool = True  # False: candidates are only verified; nothing is timed or ranked

    @abc.abstractmethod
    def load(self, problem: Problem, artifact: Artifact) -> object:
        """Loads compiled code into this process; returns what ``verify`` and ``measure`` take as ``loaded``.

        Raises CandidateError of stage LOAD.
        """

    @abc.abstractmethod
    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Runs a loaded artifact on inputs drawn from ``rng``; compares C with the float64 reference.

        Compares every element of C; a simulator may run and compare only a sample of the thread blocks, a
        replay returns the recorded verdict. Raises CandidateError of stage VERIFY for a wrong result, RUN
        where the artifact cannot run.
        """

    @abc.abstractmethod
    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Times a loaded artifact on this machine, while tuner runs nothing else here.

        Raises CandidateError of stage MEASURE where timing fails, VERIFY where a timed call computes a wrong
        result or is faster than the hardware can be, RUN where the candidate leaves threads running or makes
        the device unusable. Like ``measure_together``, never called where ``is_timed`` is False.
        """

    @abc.abstractmethod
    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times several loaded artifacts interleaved, sample by sample, in shuffled order.

        Returns one measurement for each of ``loaded``, in the same order; some of them may be works of
        ``load_baselines``. Raises CandidateError as ``measure`` does, and of stage RUN where a library
        fails.
        """


def never() -> bool:
    """Returns False: the default of ``LoadedLibrary.has_ended``, of a library in the evaluator's process."""
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
    """An evaluator that can time baseline libraries, such as cuBLAS, interleaved with candidates.

    ``load_baselines`` is called in the evaluator's process, after the top trials are loaded and before they
    are timed.
    """

    baseline_threads: int = 0  # threads of the library; 0: on a GPU

    @abc.abstractmethod
    def load_baselines(self, problem: Problem, rng: np.random.Generator) -> tuple[LoadedLibrary, ...]:
        """Returns the libraries to compare with: one, or several of which the fastest is the baseline.

        Raises TunerError where there is no library or its result is wrong, unless the result says so;
        CandidateError of stage RUN where its failure also made the candidates unusable.
        """
