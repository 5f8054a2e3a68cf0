"""The two ports of a kind of machine: one turns scripts into artifacts, one verifies and times these."""

import abc
import hashlib
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import Failure
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict


@dataclass(frozen=True)
class Partition:
    """A rectangle of C that one thread computes, and the function; of a batch, of some of its matrices."""

    entry: str  # which computes it of one matrix
    row: int  # first row of C
    column: int  # first column of C
    m: int  # rows
    n: int  # columns
    first: int = 0  # matrix of the batch
    matrices: int = 1  # from the first on

    @property
    def called(self) -> str:
        """Returns the function that computes it of all its matrices."""
        return self.entry if self.matrices == 1 else f"{self.entry}_x{self.matrices}"


@dataclass(frozen=True)
class Script:
    """A bound transform script: plain MLIR text with no template left.

    A script for several threads names its panels in a comment, see ``tuner.payload.cpu.partitions_in``.
    """

    text: str
    sha256: str  # of ``text``

    @classmethod
    def of(cls, text: str) -> "Script":
        """Builds the script with its hash."""
        return cls(text, hashlib.sha256(text.encode()).hexdigest())


@dataclass(frozen=True)
class Artifact:
    """Lowered code, ready to load. Two scripts may give the same ``sha256``."""

    host_code: str  # CPU: LLVM-dialect text; "" of a GPU, where ``program`` has the PTX
    sha256: str  # of what runs: ``host_code`` and ``panels``, or machine code and launches
    panels: tuple[Partition, ...] = ()  # CPU: calls that together do the whole problem
    stage_s: tuple[tuple[str, float], ...] = ()  # seconds of the compiler's parts
    program: KernelProgram | None = None  # GPU only
    refusal: Failure | None = None  # why it is not worth loading, known from its resources alone

    @property
    def code(self) -> str:
        """Returns the code as text: LLVM dialect, or the PTX of a GPU."""
        return self.host_code if self.program is None else self.program.ptx


@dataclass(frozen=True)
class Effort:
    """How much time a measurement may take, and when it is hopeless."""

    budget_s: float = 0.08  # seconds of timed calls
    min_samples: int = 5
    max_samples: int = 60
    stop_above_s: float | None = None  # a candidate whose first samples are all slower stops here


class AbstractCompiler(abc.ABC):
    """Turns scripts into artifacts for one kind of machine. Final subclasses only; no environment read.

    Each compile worker builds one and calls it for one script after another; what one keeps, the others do
    not know. An exception that is no CandidateError, a crash and a hang are this candidate's failures, of
    stage COMPILE; the other scripts are compiled by other children meanwhile. Which compiler that is, the
    kind's value says (``tuner.tuning.target_kind``).
    """

    @abc.abstractmethod
    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms the payload by the script and lowers it. Stages BIND, COMPILE, RESOURCES."""


class AbstractEvaluator(abc.ABC):
    """Verifies and times artifacts on one kind of machine. Final subclasses only; it needs no compiler.

    The one child process that owns the machine builds one (``tuner.workers.services``, for a bundle
    ``tuner.bundle.measure.service``) and calls it from one thread. In the life of a trial::

        loaded = load(problem, artifact)            # not of an artifact that is refused, or known
        verify(problem, loaded, rng)
        measure(problem, loaded, effort, rng)       # once the compile workers stand still; if ``is_timed``

    and at the end of a run, of the finalists, each loaded anew::

        measure_together(problem, works, effort, rng)   # again with fewer where it fails

    A child serves one problem, so its arrays may be kept. Each method raises CandidateError when the
    candidate fails; anything else that it raises, a crash and a hang become failures of stage RUN as well.
    After one of stage RUN, VERIFY or MEASURE the process is ended, and a new one builds another.
    ``load`` results are opaque to callers: only the evaluator that made one looks into it.
    """

    is_timed: bool = True  # False: a correct candidate is verified and that is all; nothing is ranked

    @abc.abstractmethod
    def load(self, problem: Problem, artifact: Artifact) -> object:
        """Makes the artifact callable in this process. Stage LOAD."""

    @abc.abstractmethod
    def verify(self, problem: Problem, loaded: object, rng: np.random.Generator) -> Verdict:
        """Compares every element with the float64 reference on fresh inputs. Stage VERIFY."""

    @abc.abstractmethod
    def measure(
        self, problem: Problem, loaded: object, effort: Effort, rng: np.random.Generator
    ) -> Measurement:
        """Times calls on this machine, nothing else of ours running. Stage MEASURE.

        Never called, like ``measure_together``, where ``is_timed`` is False.
        """

    @abc.abstractmethod
    def measure_together(
        self, problem: Problem, loaded: tuple[object, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[Measurement, ...]:
        """Times several loaded artifacts interleaved, sample by sample, in a shuffled order. Stage MEASURE.

        One of them may be what ``load_baseline`` gave.
        """


class AbstractBaselineSource(abc.ABC):
    """An evaluator of a machine whose baseline can take turns with candidates.

    ``load_baseline`` is called in the evaluator's process, after the finalists are loaded and before they are
    timed.
    """

    baseline_threads: int = 0  # that the library uses; 0: on a GPU

    @abc.abstractmethod
    def load_baseline(self, problem: Problem, rng: np.random.Generator) -> tuple[str, object]:
        """Returns the library's name, and its matmul for ``measure_together``, checked as candidates are.

        Raises TunerError where there is none or it is wrong; CandidateError(RUN) where it takes more with it.
        """
