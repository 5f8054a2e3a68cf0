"""The port of targets: all that differs between machines that code is compiled for, or recordings of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode, Resources
from tuner.core.errors import DeviceError, UsageError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.roofline import Roofline
from tuner.core.runs import Baseline, ChosenStrategy, Compiler, RunSettings
from tuner.core.trials import StoredTrial
from tuner.runtime.timing_lock import LockWait

if TYPE_CHECKING:
    from tuner.core.compiled_code import Assemble, Predict, PredictedCycles
    from tuner.core.device import AbstractDevice
    from tuner.core.interfaces import AbstractRunner
    from tuner.core.remote_results import PendingTrial
    from tuner.db.store import Store
    from tuner.runtime.workers.limits import Limits
    from tuner.runtime.workers.protocol import Factory
    from tuner.runtime.workers.runner import RunnerOrder
    from tuner.runtime.workers.services import Environment
    from tuner.space.feasible_set import FeasibleSet


Bind = Callable[[Candidate], Script]  # raises CandidateError


class InitialModel(ABC):
    """A cost model that proposes configurations to try first."""

    @abstractmethod
    def rows(self, feasible: "FeasibleSet", resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        """Returns row indices of a feasible set, the most promising configuration first.

        ``resources``: what ptxas reported of candidates that earlier runs have compiled.
        """


class UntimedOrder(ABC):
    """A port: ranks trials that were compiled or verified for a target, and not timed."""

    @abstractmethod
    def promising(
        self, store: "Store", run: int, predict: "Predict", limit: int
    ) -> "tuple[PendingTrial, ...]":
        """Returns the trials of a run that should be timed, the most promising first.

        ``predict`` gives the cycles of the first ``limit`` of them.
        """

    @abstractmethod
    def facts(self, trial: "PendingTrial") -> str:
        """Returns a line with the facts that rank a trial."""


@dataclass(frozen=True)
class Plan:
    """What a run may try: the feasible set, and rows of the set to propose before those of the sampler."""

    feasible: "FeasibleSet"
    first: tuple[int, ...] = ()  # rows to propose before all others
    model: "InitialModel | None" = None  # proposes rows after ``first``; None for a replay: it tests samplers
    notes: tuple[str, ...] = ()  # what a user should know of scripts and baseline: one sentence each

    def seeds(self, resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        """Returns the rows of the feasible set that the model proposes, best first; () if there is no model.

        ``resources``: ptxas's report for candidates that earlier runs compiled.
        """
        if self.model is None:
            return ()
        return self.model.rows(self.feasible, resources)


def ignore_report(_who: str) -> None:
    """Does nothing: the default of callbacks that report why a runner waits."""


@dataclass(frozen=True)
class RunnerSettings:
    """Settings of a runner that hold for all candidates: threads, compile workers, seed, callbacks."""

    threads: int
    workers: int  # candidates compiled at once
    seed: int
    wait: LockWait = field(default_factory=LockWait)  # for other tuners that time
    run: str = ""  # uuid of the run that the runner is for; "": not in a database
    report_fleet: Callable[[str], None] = ignore_report  # called with why the runner waits for nodes
    timeout_s: float | None = None  # to compile, and to load and run, a candidate; None: the target's
    memory_bytes: int | None = None  # of a child process; None: the target's


@dataclass(frozen=True)
class RunnerChildren:
    """Factories and limits of the child processes that compile and evaluate candidates of one problem."""

    compiler: "Factory"  # of an AbstractCompiler, in each compile worker
    evaluator: "Factory"  # of an AbstractEvaluator, in the measurement worker
    limits: "Limits"
    environment: "Environment" = ()  # of the measurement worker
    device: str = "cpu"  # on which one tuner at a time may time


@dataclass(frozen=True)
class TargetStatus:
    """Whether this machine can compile for a target, run its code and time it, and why or why not."""

    name: str
    is_available: bool  # candidates are evaluated here, not only compiled
    reason: str  # why, or why not
    is_timed: bool = True  # here; False: candidates are verified only
    can_compile: bool = False  # where ``is_available`` is False: candidates are compiled, not run
    chip: str = ""  # of the GPU that candidates run on here
    chips: tuple[str, ...] = ()  # whose code runs on that GPU
    missing: str = ""  # why compiled code does not run here: "no CUDA driver"; "": it runs, or there is none


class ProgramSupport(ABC):
    """A port: runs whole programs on a target, as opposed to single operations such as a matmul."""

    has_device: bool  # a GPU, real or simulated; False: programs run on the host
    is_simulated: bool  # the order can be chosen, defects are reported, and there is no clock

    @abstractmethod
    def open_device(
        self,
        chip: str,
        order: str,
        seed: int,
        *,
        write: "Callable[[str], object] | None" = None,
        run_launch: Callable[..., object] | None = None,
    ) -> "AbstractDevice":
        """Returns an opened GPU. The arguments matter for simulated GPUs only.

        ``order`` and ``seed``: order in which threads are simulated, and its random seed; ``write``: gets the
        text of a kernel's printf; ``run_launch``: replaces the simulation of a launch. Raises DeviceError if
        there is no GPU.
        """

    @abstractmethod
    def assembler(self, chip: str) -> "Assemble | None":
        """Returns a function that assembles PTX for a chip; None: the device compiles PTX itself."""


@final
class HostPrograms(ProgramSupport):
    """Program support of targets without a GPU: programs run on the host."""

    has_device = False
    is_simulated = False

    def open_device(self, chip: str, order: str, seed: int, **simulated: object) -> "AbstractDevice":
        raise DeviceError("programs run on the host")

    def assembler(self, chip: str) -> "Assemble | None":
        return None


class BaselineChoice(ABC):
    """A port: the libraries among which a user can choose a target's baseline, by name."""

    @abstractmethod
    def require(self, choice: str, problem: Problem) -> None:
        """Raises UsageError for a library that is unknown, not installed, or cannot compute the problem."""

    @abstractmethod
    def target(self, choice: str) -> "Target":
        """Returns the target that compares candidates with the library ``choice``.

        Raises UsageError if the target has no choice.
        """

    @abstractmethod
    def recorded(self, name: str, problem: Problem) -> str:
        """Returns the value of ``--baseline`` for a stored ``Baseline.name``: "mkl" for "MKL 2026.2 avx512".

        "", the default, if the library is not known, is not installed, or cannot compute the problem.
        """


@final
class OneBaseline(BaselineChoice):
    """The baseline choice of a target with one baseline: refuses every name; ``why`` ends the message."""

    def __init__(self, why: str) -> None:
        self._why = why

    def require(self, choice: str, problem: Problem) -> None:
        raise self._refusal(choice)

    def target(self, choice: str) -> "Target":
        raise self._refusal(choice)

    def recorded(self, name: str, problem: Problem) -> str:
        return ""

    def _refusal(self, choice: str) -> UsageError:
        return UsageError(f"--baseline {choice} cannot be combined with {self._why}")


class Target(ABC):
    """A port: what code is compiled for and measured on (cpu, cuda, simulator), or a replayed recording.

    A target is named by ``TargetName.kind``; what follows the colon, a chip or another machine's processor,
    is an argument of its methods. Implementations are final.
    """

    name: str  # "cpu"
    chips: tuple[str, ...] = ()  # names that may follow the colon, of a target of GPUs: "sm_90"
    default_chip: str = ""  # of ``chips``
    sources: tuple[str, ...] = ()  # files and folders of the package on which its code depends
    cross_compiled: "Target | None" = None  # of processors whose code is not timed here
    details: tuple[str, ...] = ()  # names of other processors that may follow the colon: "znver4"
    programs: ProgramSupport | None = None  # None: single operations only
    untimed: UntimedOrder | None = None  # None: what is not timed is not ranked
    baselines: BaselineChoice = OneBaseline("this target: the baseline can be chosen for target cpu alone")
    needs_local_resources: bool = True  # of this machine: memory for compile workers and arrays; processors
    times_processors: bool = False  # of this machine: other programs on them disturb the times

    @abstractmethod
    def status(self) -> TargetStatus:
        """Returns whether this machine compiles for the target, runs and times its code, or why not."""

    @abstractmethod
    def tools(self) -> str:
        """Returns text on the target's tools (ptxas, sensors), for ``tuner targets``; or ""."""

    @abstractmethod
    def is_timed(self) -> bool:
        """Returns whether candidates are timed; False: they are verified only."""

    @abstractmethod
    def require_types(self, problem: Problem, target: TargetName) -> None:
        """Raises UsageError for a problem whose types or other properties the target cannot compute."""

    @abstractmethod
    def machine(self, target: TargetName) -> Machine:
        """Returns the machine that code is compiled for.

        Raises UsageError for an unknown chip or processor.
        """

    @abstractmethod
    def compiler(self, target: TargetName) -> Compiler:
        """Returns the identity of the compiler build: versions and a hash of its sources."""

    @abstractmethod
    def plan(self, settings: RunSettings, machine: Machine) -> Plan:
        """Returns what a run may try: feasible set, initial configurations, cost model, notes.

        Raises UsageError if no configuration is feasible.
        """

    @abstractmethod
    def bind(
        self, strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine
    ) -> Bind:
        """Returns a function that makes a candidate's script.

        Raises UsageError for an unreadable strategy.
        """

    @abstractmethod
    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        """Returns factories and limits of the child processes that compile and evaluate candidates."""

    @abstractmethod
    def runners(
        self, orders: "tuple[RunnerOrder, ...]", how: tuple[RunnerSettings, ...]
    ) -> "tuple[AbstractRunner, ...]":
        """Returns the runners of several problems, with settings ``how`` per order.

        They may share children.
        """

    @abstractmethod
    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        """Times a library on a problem; returns its name and times.

        Raises TunerError if no library can be timed. ``wait``: how to wait for other tuners that time.
        """

    @abstractmethod
    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        """Returns the machine's highest flop/s and bytes/s for a problem's type.

        Raises TunerError where they are not measured. ``wait``: how to wait for other tuners that time.
        """

    @abstractmethod
    def source(self, problem: Problem, script: str) -> str:
        """Returns the payload, MLIR text, that a script is applied to."""

    @abstractmethod
    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        """Returns a trial's kernel as a function of arrays.

        ``program``: the trial's compiled program, None: not stored. Raises UsageError for a trial whose code
        cannot run here.
        """

    @abstractmethod
    def code(self, target: TargetName, problem: Problem, script: Script) -> str:
        """Returns the code that a script compiles to: PTX, or LLVM dialect for CPUs.

        Raises CandidateError with the stage that fails.
        """

    @abstractmethod
    def assembly(self, code: str, program: KernelCode | None) -> str:
        """Returns the assembly of a compiled program, or of ``code`` if ``program`` is None.

        "" if there is no disassembler.
        """

    @abstractmethod
    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        """Returns a model's prediction of a program's execution in GPU cycles; None if there is none.

        There is none if the target has no model, the program has no machine code (cubin), or the code cannot
        be disassembled or modelled. Predictions order candidates; they are not times.
        """

    def of_detail(self, detail: str) -> "Target":
        """Returns the target for ``detail``, the text after the colon of a name: "znver4" in "cpu:znver4".

        By default this is ``cross_compiled`` if there is one and ``detail`` is not "", else this target.
        """
        if detail and self.cross_compiled is not None:
            return self.cross_compiled
        return self

    def runner(self, order: "RunnerOrder", how: RunnerSettings) -> "AbstractRunner":
        """Returns the runner of one problem."""
        return self.runners((order,), (how,))[0]

    def with_baseline(self, baseline: str) -> "Target":
        """Returns the target that compares with a library; "": this target, with its default baseline.

        Raises UsageError if the baseline of this target cannot be chosen.
        """
        if baseline:
            return self.baselines.target(baseline)
        return self

    def require_baseline(self, baseline: str, problem: Problem) -> None:
        """Raises UsageError unless the library ``baseline`` can be compared with the problem.

        "" is the default, which can be.
        """
        if baseline:
            self.baselines.require(baseline, problem)
