"""The interface of target kinds: everything that differs between kinds, as one value per kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol

from tuner.core.errors import UsageError
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Problem
from tuner.core.runs import StoredTrial
from tuner.core.target import Script
from tuner.core.target_name import TargetName
from tuner.tuning.outcome_source import OutcomeSource

if TYPE_CHECKING:
    from tuner.core.device import AbstractDevice
    from tuner.core.device_program import Assemble
    from tuner.simulator.device.kernels import RunLaunch


def no_machine_code(_chip: str) -> "Assemble | None":
    """Returns None: the default of ``ProgramSupport.assembler`` for a device that compiles PTX itself."""
    return None


@dataclass(frozen=True)
class TargetStatus:
    """Whether this machine can compile for a target, run on it and time it, and why or why not."""

    name: str
    is_available: bool  # candidates are evaluated here, not only compiled
    reason: str  # why, or why not
    is_timed: bool = True  # here; False: candidates are verified only
    can_compile: bool = False  # without ``is_available``: candidates are compiled, not run
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
        run_launch: "RunLaunch | None" = None,
    ) -> "AbstractDevice":
        """Opens a device for ``chip`` and returns it.

        The other arguments are for simulated devices: ``order`` of work that is ready to run, ``seed`` of a
        random order, ``write`` receives text that kernels print, ``run_launch`` executes each launch.
        """
        ...


@dataclass(frozen=True)
class ProgramSupport:
    """How whole programs, not single operations such as a matmul, run on a kind of target."""

    open_device: "OpenDevice | None" = None  # None: programs run on the host
    assembler: "Callable[[str], Assemble | None]" = no_machine_code  # of a chip: PTX -> machine code
    is_simulated: bool = False  # the order can be chosen, defects are reported, and there is no clock

    @property
    def has_device(self) -> bool:
        """Returns True if programs run on a GPU, real or simulated, False if they run on the host."""
        return self.open_device is not None


@dataclass(frozen=True)
class BaselineChoice:
    """The libraries that a user may choose as the baseline of a kind of target, by name."""

    # (choice, problem) -> None; raises UsageError for a choice that is unknown, missing or cannot compute it
    require: Callable[[str, Problem], None]
    outcomes: Callable[[str], OutcomeSource]  # choice -> outcomes that are compared with it
    # (recorded name of a library, problem) -> choice of the same library here; "": the default
    recorded: Callable[[str, Problem], str]


def no_choice(why: str) -> BaselineChoice:
    """Returns the choice of a kind that always has the same baseline: refuses every name with ``why``."""

    def refuse(choice: str, *_: object) -> NoReturn:
        raise UsageError(f"--baseline {choice} cannot be combined with {why}")

    return BaselineChoice(refuse, refuse, lambda _name, _problem: "")


ONE_BASELINE = no_choice("this target: the baseline can be chosen for target cpu alone")


@dataclass(frozen=True)
class TargetKind:
    """A kind of target (cpu, cuda, simulator): the functions that differ between kinds.

    A new kind is a file with such a value, and an entry in ``parts.kinds.KINDS``.
    """

    name: str  # "cpu": ``TargetName.kind``
    status: Callable[[], TargetStatus]
    outcomes: OutcomeSource  # of runs on this machine
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
    described: "TargetKind | None" = None  # of targets whose detail is another machine's processor
    details: tuple[str, ...] = ()  # the processors that ``described`` takes: "znver4"
    baselines: BaselineChoice = ONE_BASELINE

    def outcomes_with(self, baseline: str) -> OutcomeSource:
        """Returns the outcomes of runs that are compared with a chosen baseline; "": with the default one.

        Raises UsageError for a kind without a choice.
        """
        return self.baselines.outcomes(baseline) if baseline else self.outcomes

    def require_baseline(self, baseline: str, problem: Problem) -> None:
        """Raises UsageError unless a problem can be compared with a chosen baseline; "" always can."""
        if baseline:
            self.baselines.require(baseline, problem)
