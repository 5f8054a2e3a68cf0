"""All that differs between kinds of targets, as one value per kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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
    """Returns nothing: the device takes PTX."""
    return None


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
    outcomes: OutcomeSource  # of runs on this machine
    source: Callable[[Problem, str], str]  # (problem, script) -> payload of the script
    # (problem, trial, its compiled program if one is stored) -> kernel to call
    load: Callable[[Problem, StoredTrial, KernelProgram | None], Callable[..., object]]
    # (target, problem, script) -> PTX, or LLVM dialect of a CPU; raises CandidateError
    code: Callable[[TargetName, Problem, Script], str]
    # (code, compiled program if there is one) -> assembly of its machine; "" without a tool that tells it
    assembly: Callable[[str, KernelProgram | None], str]
    require_types: Callable[[Problem, TargetName], None]  # raises UsageError for those it lacks
    default_chip: str = ""  # of a kind whose targets are chips
    programs: ProgramSupport | None = None  # None: single operations only
    sources: tuple[str, ...] = ()  # files and folders below the package that make its code
