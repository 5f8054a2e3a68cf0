"""All that differs between kinds of targets, as one value per kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tuner.core.candidate import Candidate
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.errors import CandidateError, Stage
from tuner.core.kernel_program import KernelProgram, Resources
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, RunSettings, StoredTrial
from tuner.core.target import Script
from tuner.core.target_name import TargetName
from tuner.space.feasible_set import FeasibleSet
from tuner.tuning.run_request import RunRequest

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.core.device import AbstractDevice
    from tuner.core.device_program import Assemble
    from tuner.simulator.device.kernels import RunLaunch
    from tuner.workers.in_flight import BenchOrder
    from tuner.workers.limits import Limits
    from tuner.workers.protocol import Factory
    from tuner.workers.services import Environment

Bind = Callable[[Candidate], Script]  # raises CandidateError
Seeds = Callable[[Mapping[Candidate, Resources]], tuple[int, ...]]  # what ptxas told of candidates -> rows


def no_seeds(_resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
    """Returns nothing: a replay judges a search, not what is known of a machine."""
    return ()


def any_types(_problem: Problem, _target: TargetName) -> None:
    """Takes the element types of every problem."""


def no_machine_code(_chip: str) -> "Assemble | None":
    """Returns nothing: the device takes PTX."""
    return None


def no_code(target: TargetName, _problem: Problem, _script: Script) -> str:
    """Raises CandidateError: nothing is compiled."""
    raise CandidateError(Stage.COMPILE, f"target {target.text}: compiles nothing")


def no_assembly(_code: str, _program: KernelProgram | None) -> str:
    """Returns nothing: nobody can tell."""
    return ""


@dataclass(frozen=True)
class TargetStatus:
    """Whether this machine can compile for a target and run on it."""

    name: str
    is_available: bool  # candidates are judged here, not only compiled
    reason: str  # why, or why not
    is_timed: bool = True  # here; False: nothing is ranked
    can_compile: bool = False  # beside ``is_available``: candidates get as far as their code
    chip: str = ""  # of the GPU that candidates run on here
    missing: str = ""  # why nothing compiled runs here: "no CUDA driver"; "" where it runs


@dataclass(frozen=True)
class Plan:
    """What a run may try."""

    feasible: FeasibleSet
    first: tuple[int, ...] = ()  # rows to propose before any other
    seeds: Seeds = no_seeds  # rows that a model of the machine speaks for, to propose after these


def no_words(_who: str) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class BenchSettings:
    """How a bench works, whatever it is ordered."""

    threads: int
    workers: int  # candidates compiled at once
    seed: int
    tell_of_waiting: Callable[[str], None] = no_words  # for another tuner that times: its words
    run: str = ""  # uuid of the run that it is for; "" of what no database has
    tell_of_fleet: Callable[[str], None] = no_words  # why it waits for nodes that tell nothing


@dataclass(frozen=True)
class BenchChildren:
    """Which child processes work for the candidates of one problem, here or on a node of a fleet."""

    compiler: "Factory"  # of an AbstractCompiler, in each child that compiles
    evaluator: "Factory"  # of an AbstractEvaluator, in the child that owns the machine
    limits: "Limits"
    environment: "Environment" = ()  # of the child that evaluates
    device: str = "cpu"  # that is timed, by one tuner at a time


class OpenDevice(Protocol):
    """Opens the device that programs of a target run on."""

    def __call__(
        self,
        chip: str,
        order: str,
        seed: int,
        /,
        *,
        write: "Callable[[str], object] | None" = None,
        run_launch: "RunLaunch | None" = None,
    ) -> "AbstractDevice":
        """Takes a chip and, for a simulated one, the order of ready work and the seed of a random order.

        A simulated device gives ``write`` what kernels print, and has ``run_launch`` run its launches.
        """
        ...


@dataclass(frozen=True)
class ProgramSupport:
    """How whole programs run on a kind of target."""

    open_device: "OpenDevice | None" = None  # None: programs run on the host
    assembler: "Callable[[str], Assemble | None]" = no_machine_code  # of a chip: PTX -> machine code
    is_simulated: bool = False  # the order can be chosen, defects are reported, and there is no clock

    @property
    def has_device(self) -> bool:
        """Tells whether programs run on a device, not on the host."""
        return self.open_device is not None


@dataclass(frozen=True)
class TargetKind:
    """A kind of target. A new one is a file with such a value, and a line in ``parts.kinds.KINDS``."""

    name: str  # "cpu": a TargetName's kind
    status: Callable[[], TargetStatus]
    machine: Callable[[TargetName], Machine]  # that code is made for
    compiler: Callable[[TargetName], Compiler]
    plan: Callable[[RunSettings, Machine], Plan]  # raises UsageError when nothing can be tried
    # (strategies, problem, threads, machine) -> what binds; raises UsageError for a script that is no such
    bind: Callable[[tuple[ChosenStrategy, ...], Problem, int, Machine], Bind]
    bench: "Callable[[BenchOrder, BenchSettings], AbstractBench]"
    baseline: Callable[[Problem, int, int], Baseline]  # (problem, threads, seed); raises TunerError
    roofline: Callable[[Problem, int], Roofline]  # (problem, threads); raises TunerError
    source: Callable[[Problem, str], str]  # (problem, script) -> payload of the script
    # (problem, trial, its compiled program if one is stored) -> kernel to call
    load: Callable[[Problem, StoredTrial, KernelProgram | None], Callable[..., object]]
    # (target, problem, script) -> PTX, or LLVM dialect of a CPU; raises CandidateError
    code: Callable[[TargetName, Problem, Script], str] = no_code
    # (target, problem, threads) -> what its bench is made of; None: no child works for it
    children: Callable[[TargetName, Problem, int], BenchChildren] | None = None
    # (code, compiled program if there is one) -> assembly of its machine; "" without a tool that tells it
    assembly: Callable[[str, KernelProgram | None], str] = no_assembly
    default_chip: str = ""  # of a kind whose targets are chips
    require_types: Callable[[Problem, TargetName], None] = any_types  # raises UsageError for those it lacks
    programs: ProgramSupport | None = None  # None: single operations only
    sources: tuple[str, ...] = ()  # files and folders below the package that make its code
    # (request, workers) -> settings, where the target decides what others let a user say; raises UsageError
    settings: Callable[[RunRequest, int], RunSettings] | None = None
    of_run: "Callable[[RunSettings], TargetKind] | None" = None  # where only a run's settings tell the rest
