"""The interface of targets: everything that differs between them, and the source of a run's outcomes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, Protocol

from tuner.core.candidate import Candidate, ChosenStrategy, TargetName
from tuner.core.errors import UsageError
from tuner.core.gpu_code import KernelProgram, Resources
from tuner.core.interfaces import Script
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, RunSettings, StoredTrial
from tuner.runtime.timing_lock import LockWait

if TYPE_CHECKING:
    from tuner.core.gpu import AbstractDevice
    from tuner.core.gpu_code import Assemble
    from tuner.core.interfaces import AbstractRunner
    from tuner.runtime.workers.protocol import Factory, Limits
    from tuner.runtime.workers.runner import RunnerOrder
    from tuner.runtime.workers.services import Environment
    from tuner.search.cost_model.untimed import Predict
    from tuner.space.feasible_set import FeasibleSet


Bind = Callable[[Candidate], Script]  # raises CandidateError
RunnersFactory = Callable[
    ["tuple[RunnerOrder, ...]", "tuple[RunnerSettings, ...]"], "tuple[AbstractRunner, ...]"
]
Seeds = Callable[[Mapping[Candidate, Resources]], tuple[int, ...]]  # ptxas's resources of candidates -> rows


@dataclass(frozen=True)
class Plan:
    """The feasible set of a run, and the rows of it that are proposed before the sampler's."""

    feasible: "FeasibleSet"
    first: tuple[int, ...] = ()  # rows to propose before all others
    # returns rows that a cost model prefers, to propose after ``first``; none for a replay: it tests samplers
    seeds: Seeds = lambda _resources: ()
    notes: tuple[str, ...] = ()  # what a user should know of the scripts: one sentence each


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
class MeasurementBackend:
    """The functions by which a run compiles, verifies and times candidates, or reads recorded outcomes."""

    machine: Callable[[TargetName], Machine]  # that code is compiled for
    compiler: Callable[[TargetName], Compiler]
    plan: Callable[[RunSettings, Machine], Plan]  # raises UsageError when nothing can be tried
    # (strategies, problem, threads, machine) -> binder; raises UsageError for an unreadable strategy
    bind: Callable[[tuple[ChosenStrategy, ...], Problem, int, Machine], Bind]
    runner: "Callable[[RunnerOrder, RunnerSettings], AbstractRunner]"
    # (problem, threads, seed, wait); raises TunerError
    baseline: Callable[[Problem, int, int, LockWait], Baseline]
    roofline: Callable[[Problem, int, LockWait], Roofline]  # (problem, threads, wait); raises TunerError
    # (target, problem, threads) -> child processes of the runner; None: the runner has none
    children: Callable[[TargetName, Problem, int], RunnerChildren] | None = None
    # runners of several problems, each with its settings, that share child processes or a connection to a
    # fleet; None: each problem has a ``runner`` of its own
    runners: RunnersFactory | None = None
    is_timed: Callable[[], bool] = lambda: True  # False: correct candidates are verified, not timed
    needs_local_resources: bool = True  # of this machine: memory for compile workers and arrays; processors
    times_processors: bool = False  # of this machine: other programs on them disturb the times


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


class OpenDevice(Protocol):
    """A function that opens the GPU, real or simulated, on which programs of a target run."""

    def __call__(
        self,
        chip: str,
        order: str,
        seed: int,
        /,
        *,
        write: "Callable[[str], object] | None" = None,
        run_launch: Callable[..., object] | None = None,
    ) -> "AbstractDevice":
        """Opens a device; ``order``, ``seed``, ``write`` and ``run_launch`` are for simulated ones."""


@dataclass(frozen=True)
class ProgramSupport:
    """How whole programs, not single operations such as a matmul, run on a kind of target."""

    open_device: "OpenDevice | None" = None  # None: programs run on the host
    # of a chip: PTX -> machine code; None: the device compiles PTX itself
    assembler: "Callable[[str], Assemble | None]" = lambda _chip: None
    is_simulated: bool = False  # the order can be chosen, defects are reported, and there is no clock

    @property
    def has_device(self) -> bool:
        """Returns True if programs run on a GPU, real or simulated, False if they run on the host."""
        return self.open_device is not None


@dataclass(frozen=True)
class BaselineChoice:
    """The libraries that a user may choose as the baseline of a kind of target, by name."""

    # (choice, problem) -> None; raises UsageError: unknown, missing, or unable to compute the problem
    require: Callable[[str, Problem], object]
    measurement: Callable[[str], MeasurementBackend]  # choice -> how candidates are compared with it
    # (recorded name of a library, problem) -> choice of the same library here; "": the default
    recorded: Callable[[str, Problem], str]


def no_choice(why: str) -> BaselineChoice:
    """Returns the choice of a kind that always has the same baseline: refuses every name with ``why``."""

    def refuse(choice: str, *_: object) -> NoReturn:
        raise UsageError(f"--baseline {choice} cannot be combined with {why}")

    return BaselineChoice(refuse, refuse, lambda _name, _problem: "")


ONE_BASELINE = no_choice("this target: the baseline can be chosen for target cpu alone")


@dataclass(frozen=True)
class TargetBackend:
    """A kind of target (cpu, cuda, simulator): the functions that differ between kinds."""

    name: str  # "cpu": ``TargetName.kind``
    status: Callable[[], TargetStatus]
    measurement: MeasurementBackend  # of runs on this machine
    source: Callable[[Problem, str], str]  # (problem, script) -> payload of the script
    # (problem, trial, its compiled program if one is stored) -> kernel to call
    load: Callable[[Problem, StoredTrial, KernelProgram | None], Callable[..., object]]
    # (target, problem, script) -> PTX, or LLVM dialect of a CPU; raises CandidateError
    code: Callable[[TargetName, Problem, Script], str]
    # (code, compiled program if there is one) -> assembly; "" without a disassembler
    assembly: Callable[[str, KernelProgram | None], str]
    require_types: Callable[[Problem, TargetName], None]  # raises UsageError for unsupported types
    default_chip: str = ""  # of a kind whose targets are chips
    programs: ProgramSupport | None = None  # None: single operations only
    sources: tuple[str, ...] = ()  # files and folders of the package on which its code depends
    cross_compiled: "TargetBackend | None" = None  # of targets whose detail is another machine's processor
    details: tuple[str, ...] = ()  # the processors that ``cross_compiled`` takes: "znver4"
    predict: "Predict | None" = None  # cycles of a program of machine code; None: of no use for this target
    tools: Callable[[], str] = lambda: ""  # what `tuner targets` adds to the status: ptxas, sensors
    baselines: BaselineChoice = ONE_BASELINE

    def measurement_with(self, baseline: str) -> MeasurementBackend:
        """Returns functions that compare candidates with a baseline ("": the default). Raises UsageError."""
        return self.baselines.measurement(baseline) if baseline else self.measurement

    def require_baseline(self, baseline: str, problem: Problem) -> None:
        """Raises UsageError unless a problem can be compared with a chosen baseline; "" always can."""
        if baseline:
            self.baselines.require(baseline, problem)
