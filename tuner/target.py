"""The port of a kind of machine: turns a script into an artifact, checks it, times it."""

import abc
import hashlib
from dataclasses import dataclass

import numpy as np

from tuner.errors import Failure
from tuner.kernel import KernelProgram
from tuner.machine import Compiler, Machine
from tuner.payload import Panel
from tuner.problem import Problem
from tuner.record import Measurement, Verdict


@dataclass(frozen=True)
class Script:
    """A bound transform script: plain MLIR text with no template left.

    A script for several threads names its panels in a comment, see ``tuner.payload.panels_in``.
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

    Each method raises CandidateError when the candidate fails; anything else is a defect of ours.
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
        """Times several loaded artifacts interleaved, sample by sample, in a shuffled order."""


class AbstractVendorSource(abc.ABC):
    """A judge of a machine whose vendor library can take turns with candidates."""

    @abc.abstractmethod
    def load_vendor(self, problem: Problem, rng: np.random.Generator) -> tuple[str, object]:
        """Returns the library's name, and its matmul for ``measure_together``, checked as candidates are.

        Raises TunerError where there is none or it is wrong; CandidateError(RUN) where it takes more with it.
        """


class AbstractTarget(AbstractJudge):
    """One kind of machine. Final subclasses only; construct with what it needs, no environment read."""

    name: str  # "cpu", "fake", ...

    @abc.abstractmethod
    def machine(self) -> Machine:
        """Returns the machine that code is made for."""

    @abc.abstractmethod
    def compiler(self) -> Compiler:
        """Returns what makes the code."""

    @abc.abstractmethod
    def compile(self, problem: Problem, script: Script) -> Artifact:
        """Transforms the payload by the script and lowers it. Stages BIND, COMPILE, RESOURCES."""
