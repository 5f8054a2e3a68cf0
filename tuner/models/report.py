"""The report of one run of a program: its comparisons with a reference, its defects and times.

Loads no MLIR: a child process makes the report, its parent prints it.
"""

from dataclasses import dataclass, field

from tuner.core.device_programs import DeviceFusion, DeviceWork
from tuner.core.problem import Problem
from tuner.core.programs import ExplainedFusion, TunedKernel
from tuner.models.program_times import ProgramTimes


@dataclass(frozen=True)
class Comparison:
    """One compared value: its error relative to a reference, and the allowed error.

    The value is a result, a written argument, the printed text of a program, or elements that sampled blocks
    wrote.
    """

    name: str  # "result 0", "argument 2"
    # relative to the largest expected magnitude, or to 1 if that is larger; inf where shapes, NaNs or
    # infinities differ (``tuner.models.comparison.max_error``)
    max_error: float
    tolerance: float
    is_blind: bool = False  # an array of zeros would be within the tolerance

    @property
    def is_equal(self) -> bool:
        """True if the error is 0, or is within the tolerance where an array of zeros would not be."""
        return self.max_error == 0 or (self.max_error <= self.tolerance and not self.is_blind)

    @property
    def verdict(self) -> str:
        """Returns "equal", "unclear" (within the tolerance, but zeros would pass too) or "WRONG"."""
        is_near = self.max_error <= self.tolerance
        if self.is_equal:
            return "equal"
        if is_near:
            return "unclear"
        return "WRONG"


@dataclass(frozen=True)
class KernelSample:
    """The launches of one kernel: how many blocks the simulator ran, and the comparison with a reference."""

    kernel: str
    launches: int
    blocks: int  # blocks of all launches
    simulated: int  # blocks that the simulator ran
    elements: int = 0  # number of compared elements
    # name of the reference that computed the other blocks; "" where the simulator ran all
    reference: str = ""
    finished: int = 0  # blocks that the reference computed: fewer than all where its time ran out
    comparison: Comparison | None = None  # of the worst launch; None: nothing was compared

    @property
    def is_right(self) -> bool:
        """True if all blocks were simulated, or if elements were compared and equal the reference's."""
        return not self.reference or (self.comparison is not None and self.comparison.is_equal)


@dataclass(frozen=True)
class ProgramReport:
    """The outcome of one run of a program: types, matmuls, trace, defects, comparisons and times."""

    entry: str
    arguments: tuple[str, ...]  # "64x?xf32", "index"
    results: tuple[str, ...]
    problems: tuple[Problem, ...]  # distinct matmuls that a script implements
    tuned: tuple[TunedKernel, ...] = field(default=(), kw_only=True)  # those with the script of a trial
    # why the scripts of stored trials are not used, where they failed to compile
    given_up: str = field(default="", kw_only=True)
    # streams that the program takes from its caller; 0: it uses none, or its own code creates them
    streams: int
    trace: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()  # unordered accesses, leaks, and similar, each in one line
    comparisons: tuple[Comparison, ...] = ()
    reference: str = ""  # what the comparisons are with; "" without any
    not_compared: str = ""  # why a program with its own schedule was not compared with its text before it
    times: ProgramTimes | None = None
    printed: str = ""  # by the program: its kernels, and the functions of MLIR's runner libraries
    is_simulated: bool = False  # the device detects defects, and has no clock
    is_interpreted: bool = False  # some kernels are interpreted on the host: results, but no times

    samples: tuple[KernelSample, ...] = ()  # per kernel, where launches were sampled
    work: DeviceWork | None = None  # launches and copies of the call; None: no device ran the program
    # launches and copies of the same program compiled as a whole; None: it is, or only a call shows them
    work_without_fusions: DeviceWork | None = None
    resident_bytes: int = 0  # constants of a program of fusions that stay on the device from call to call
    device_fusions: tuple[DeviceFusion, ...] = ()  # of a program on a device that is computed as fusions
    fusions: tuple[ExplainedFusion, ...] = ()  # of a program on the host that is computed as fusions
    why_no_fusions: str = ""  # why a program is computed as a whole

    @property
    def is_right(self) -> bool:
        """Returns whether no defect was reported and every comparison and every sampled kernel is equal."""
        is_equal = all(comparison.is_equal for comparison in self.comparisons)
        return is_equal and not self.defects and all(sample.is_right for sample in self.samples)
