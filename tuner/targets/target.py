"""The port of targets: all that differs between machines that code is compiled for, or replayed of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from tuner.core.candidate import Candidate, ChosenStrategy, TargetName
from tuner.core.compiled_code import KernelCode, Resources
from tuner.core.errors import UsageError
from tuner.core.gpu import DeviceError
from tuner.core.interfaces import Script
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, RunSettings, StoredTrial
from tuner.runtime.timing_lock import LockWait

if TYPE_CHECKING:
    from tuner.core.compiled_code import Assemble
    from tuner.core.gpu import AbstractDevice
    from tuner.core.interfaces import AbstractRunner
    from tuner.runtime.workers.protocol import Factory, Limits
    from tuner.runtime.workers.runner import RunnerOrder
    from tuner.runtime.workers.services import Environment
    from tuner.search.cost_model.untimed import PredictedCycles
    from tuner.space.feasible_set import FeasibleSet


Bind = Callable[[Candidate], Script]  # raises CandidateError


class InitialModel(ABC):
    """A cost model that knows which rows of a feasible set are worth a try."""

    @abstractmethod
    def rows(self, feasible: "FeasibleSet", resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        """Returns rows of a feasible set, the best first; ``resources``: of candidates, from ptxas."""


@dataclass(frozen=True)
class Plan:
    """The feasible set of a run, and the rows of it that are proposed before the sampler's."""

    feasible: "FeasibleSet"
    first: tuple[int, ...] = ()  # rows to propose before all others
    model: "InitialModel | None" = None  # proposes rows after ``first``; None for a replay: it tests samplers
    notes: tuple[str, ...] = ()  # what a user should know of the scripts: one sentence each

    def seeds(self, resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
        """Returns rows that the model prefers; ``resources``: of candidates, from ptxas."""
        if self.model is None:
            return ()
        return self.model.rows(self.feasible, resources)


def ignore_report(_who: str) -> None:
    """Does nothing: the default of callbacks that report why a runner waits."""


@dataclass(frozen=True)
class RunnerSettings:
    """Settings of a runner that hold for all candidates: threads, compile workers, seed, and callbacks."""

    threads: int
    workers: int  # candidates compiled at once
    seed: int
    wait: LockWait = field(default_factory=LockWait)  # for other tuners that time
    run: str = ""  # uuid of the run that the runner is for; "": not in a database
    report_fleet: Callable[[str], None] = ignore_report  # called with why the runner waits for nodes


@dataclass(frozen=True)
class RunnerChildren:
    """How to start the child processes that compile and evaluate candidates of one problem, with limits."""

    compiler: "Factory"  # of an AbstractCompiler, in each compile worker
    evaluator: "Factory"  # of an AbstractEvaluator, in the measurement worker
    limits: "Limits"
    environment: "Environment" = ()  # of the measurement worker
    device: str = "cpu"  # on which one tuner at a time may time


@dataclass(frozen=True)
class TargetStatus:
    """Whether this machine can compile for a target, run on it and time it, and why or why not."""

    name: str
    is_available: bool  # candidates are evaluated here, not only compiled
    reason: str  # why, or why not
    is_timed: bool = True  # here; False: candidates are verified only
    can_compile: bool = False  # where ``is_available`` is False: candidates are compiled, not run
    chip: str = ""  # of the GPU that candidates run on here
    missing: str = ""  # why nothing compiled runs here: "no CUDA driver"; "" where it runs


class ProgramSupport(ABC):
    """How whole programs, not single operations such as a matmul, run on a target."""

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
        """Opens the GPU; ``order``, ``seed``, ``write`` and ``run_launch`` are for simulated ones.

        Raises DeviceError where there is none.
        """

    @abstractmethod
    def assembler(self, chip: str) -> "Assemble | None":
        """Returns what makes machine code of PTX for a chip; None: the device compiles PTX itself."""


@final
class HostPrograms(ProgramSupport):
    """Programs of a target without a device: they run on the host."""

    has_device = False
    is_simulated = False

    def open_device(self, chip: str, order: str, seed: int, **simulated: object) -> "AbstractDevice":
        raise DeviceError("programs run on the host")

    def assembler(self, chip: str) -> "Assemble | None":
        return None


class BaselineChoice(ABC):
    """The libraries that a user may choose as the baseline of a target, by name."""

    @abstractmethod
    def require(self, choice: str, problem: Problem) -> None:
        """Raises UsageError for a library that is unknown, missing, or unable to compute the problem."""

    @abstractmethod
    def target(self, choice: str) -> "Target":
        """Returns the target whose candidates are compared with a library. Raises UsageError."""

    @abstractmethod
    def recorded(self, name: str, problem: Problem) -> str:
        """Returns the choice here of a library by its recorded name; "": the default."""


@final
class OneBaseline(BaselineChoice):
    """The choice of a target that always has the same baseline: refuses every name with ``why``."""

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
    """What code is compiled for and measured on (cpu, cuda, simulator), or a recording that is replayed.

    A target is named by ``TargetName.kind``; what follows the colon, a chip or another machine's processor,
    is an argument of its methods. Implementations are final.
    """

    name: str  # "cpu"
    default_chip: str = ""  # of a target whose details are chips
    sources: tuple[str, ...] = ()  # files and folders of the package on which its code depends
    cross_compiled: "Target | None" = None  # of details that are other machines' processors
    details: tuple[str, ...] = ()  # the processors that ``cross_compiled`` takes: "znver4"
    programs: ProgramSupport | None = None  # None: single operations only
    baselines: BaselineChoice = OneBaseline("this target: the baseline can be chosen for target cpu alone")
    needs_local_resources: bool = True  # of this machine: memory for compile workers and arrays; processors
    times_processors: bool = False  # of this machine: other programs on them disturb the times

    @abstractmethod
    def status(self) -> TargetStatus:
        """Returns whether this machine compiles for the target, runs and times it, or why not."""

    @abstractmethod
    def tools(self) -> str:
        """Returns what ``tuner targets`` adds to the status: ptxas, sensors; or ""."""

    @abstractmethod
    def is_timed(self) -> bool:
        """Returns False if correct candidates are verified, not timed."""

    @abstractmethod
    def require_types(self, problem: Problem, target: TargetName) -> None:
        """Raises UsageError for types, and other properties of a problem, that the target does not take."""

    @abstractmethod
    def machine(self, target: TargetName) -> Machine:
        """Returns the machine that code is compiled for. Raises UsageError where it is not known."""

    @abstractmethod
    def compiler(self, target: TargetName) -> Compiler:
        """Returns the identity of the compiler build: versions, hash of its sources."""

    @abstractmethod
    def plan(self, settings: RunSettings, machine: Machine) -> Plan:
        """Returns what a run may try. Raises UsageError when nothing can be tried."""

    @abstractmethod
    def bind(
        self, strategies: tuple[ChosenStrategy, ...], problem: Problem, threads: int, machine: Machine
    ) -> Bind:
        """Returns what makes a script of a candidate. Raises UsageError for an unreadable strategy."""

    @abstractmethod
    def children(self, target: TargetName, problem: Problem, threads: int) -> RunnerChildren:
        """Returns how the child processes that compile and evaluate candidates are started."""

    @abstractmethod
    def runners(
        self, orders: "tuple[RunnerOrder, ...]", how: tuple[RunnerSettings, ...]
    ) -> "tuple[AbstractRunner, ...]":
        """Returns the runners of several problems, each with its settings; they may share child processes."""

    @abstractmethod
    def baseline(self, problem: Problem, threads: int, seed: int, wait: LockWait) -> Baseline:
        """Returns the time of a library on a problem. Raises TunerError where there is none."""

    @abstractmethod
    def roofline(self, problem: Problem, threads: int, wait: LockWait) -> Roofline:
        """Returns what the machine can do at most. Raises TunerError where that is not measured."""

    @abstractmethod
    def source(self, problem: Problem, script: str) -> str:
        """Returns the payload of a script, MLIR text."""

    @abstractmethod
    def load(self, problem: Problem, trial: StoredTrial, program: KernelCode | None) -> Callable[..., object]:
        """Returns a trial's kernel to call; ``program``: its compiled program if one is stored.

        Raises UsageError for a trial that cannot run here.
        """

    @abstractmethod
    def code(self, target: TargetName, problem: Problem, script: Script) -> str:
        """Returns the code that a script compiles to: PTX, LLVM dialect of a CPU. Raises CandidateError."""

    @abstractmethod
    def assembly(self, code: str, program: KernelCode | None) -> str:
        """Returns code, or the compiled program if there is one, as assembly; "" without a disassembler."""

    @abstractmethod
    def predicted(self, problem: Problem, program: KernelCode) -> "PredictedCycles | None":
        """Returns the cycles that a model counts in a program's machine code; None where it has no model."""

    def runner(self, order: "RunnerOrder", how: RunnerSettings) -> "AbstractRunner":
        """Returns the runner of one problem, as ``runners`` does."""
        return self.runners((order,), (how,))[0]

    def with_baseline(self, baseline: str) -> "Target":
        """Returns the target that compares with a library ("": the default). Raises UsageError."""
        if baseline:
            return self.baselines.target(baseline)
        return self

    def require_baseline(self, baseline: str, problem: Problem) -> None:
        """Raises UsageError unless a problem can be compared with a chosen library; "" always can."""
        if baseline:
            self.baselines.require(baseline, problem)
