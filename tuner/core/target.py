"""The port of a kind of machine: turns a script into an artifact, checks it, times it."""

import abc
import hashlib
from dataclasses import dataclass

import numpy as np

from tuner.core.errors import Failure
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Verdict


@dataclass(frozen=True)
class Panel:
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

    A script for several threads names its panels in a comment, see ``tuner.payload.cpu.panels_in``.
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

    code: str  # CPU: LLVM-dialect text; GPU: PTX
    sha256: str  # of what runs: ``code`` and ``panels``, or machine code and launches
    panels: tuple[Panel, ...]  # CPU: calls that together do the whole problem
    stage_s: tuple[tuple[str, float], ...] = ()  # seconds of the compiler's parts
    program: KernelProgram | None = None  # GPU only
    refusal: Failure | None = None  # why it is not worth loading, known from its resources alone


@dataclass(frozen=True)
class Effort:
    """How much time a measurement may take, and when it is hopeless."""

    budget_s: float = 0.08  # seconds of timed calls
    min_samples: int = 5
    max_samples: int = 60
    stop_above_s: float | None = None  # a candidate whose first samples are all slower stops here


class AbstractJudge(abc.ABC):
    """What runs artifacts on one kind of machine: the half of a target that needs no compiler.

    The one child process that owns the machine builds one (``tuner.workers.services``, for a bundle
    ``tuner.bundle.measure.service``) and calls it from one thread. In the life of a trial::

        loaded = load(problem, artifact)            # not of an artifact that is refused, or known
        verify(problem, loaded, rng)
        measure(problem, loaded, effort, rng)       # once the compile workers stand still; if ``is_timed``

    and at the end of a run, of the finalists, each loaded anew::

        measure_together(problem, works, effort, rng)   # again with fewer where it fails

    A child serves one problem, so its arrays may be kept. Each method raises CandidateError when the
    candidate fails; anything else that it raises, a crash and a hang become failures of stage RUN as well.
    After one of stage RUN, VERIFY or MEASURE the process is ended, and a new one builds another judge.
    ``load`` results are opaque to callers: only the judge that made one looks into it.
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
    """A judge of a machine whose baseline can take turns with candidates.

    ``load_baseline`` is called in the judge's process, after the finalists are loaded and before they are
    timed.
    """

    baseline_threads: int = 0  # that the library uses; 0: on a GPU

    @abc.abstractmethod
    def load_baseline(self, problem: Problem, rng: np.random.Generator) -> tuple[str, object]:
        """Returns the library's name, and its matmul for ``measure_together``, checked as candidates are.

        Raises TunerError where there is none or it is wrong; CandidateError(RUN) where it takes more with it.
        """


class AbstractTarget(AbstractJudge):
    """One kind of machine. Final subclasses only; construct with what it needs, no environment read.

    A run builds several, each in a process of its own: what one keeps, the others do not know. ``compile`` is
    called in each compile worker, one script after another; the methods of a judge in the process that owns
    the machine. Of ``compile`` as well, an exception that is no CandidateError, a crash and a hang are this
    candidate's failures, of stage COMPILE; the other scripts are compiled by other children meanwhile. Which
    machine and which compiler that is, the kind's value tells (``tuner.tuning.target_kind``).
    """

    name: str  # "cpu", "fake", ...

    @abc.abstractmethod
    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms the payload by the script and lowers it. Stages BIND, COMPILE, RESOURCES."""
