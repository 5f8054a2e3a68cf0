"""The request for one run of a program and the report of the run, exchanged with a child process."""

from dataclasses import dataclass, replace

from tuner.core.device_program import DeviceGroup
from tuner.core.explained_group import ExplainedGroup
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.core.target_name import TargetName
from tuner.programs.options import PROGRAM_DEFAULTS, ProgramOptions
from tuner.programs.run.device_work import DeviceWork
from tuner.programs.times import ProgramTimes


@dataclass(frozen=True)
class ProgramRequest:
    """What to compile and run: a program, its target, options, scripts and arguments."""

    text: str  # the payload
    target: TargetName
    entry: str | None = None  # None: main, or the only public function
    options: ProgramOptions = PROGRAM_DEFAULTS
    # A problem without a script gets the default script; None: no scripts, all matmuls become loops.
    scripts: tuple[tuple[Problem, str], ...] | None = ()
    arguments: tuple[str, ...] = ()  # "2=7", "0=[8,4]zeros"; an argument that is not listed is random
    is_compared: bool = False  # with the same payload on the host
    is_timed: bool = True  # on hardware
    is_explained: bool = False  # on the host: each group of operations is timed alone
    # results database whose best trials schedule the groups of operations, a path or URL; "": each group has
    # its first configuration
    database: str = ""
    model: str = ""  # MODEL.py:FUNCTION or MODEL.pt2 that the payload comes from; "" of MLIR
    baselines: tuple[str, ...] = ()  # names of those that are timed next to a tuned model

    @property
    def bound(self) -> dict[Problem, Script] | None:
        """Returns the transform script of each listed matmul; None: all matmuls become loops.

        A matmul that is absent from the result gets its default script.
        """
        return None if self.scripts is None else {key: Script.of(text) for key, text in self.scripts}


def without_scripts(request: ProgramRequest) -> ProgramRequest:
    """Returns a copy of the request that lowers all matmuls of the program to loops."""
    return replace(request, scripts=None)


@dataclass(frozen=True)
class Comparison:
    """One compared value: its error relative to a reference, and the tolerance.

    The value is a result, a written argument or the printed text of a program, whose reference is the same
    payload run on the host; or what sampled blocks of a kernel wrote.
    """

    name: str  # "result 0", "argument 2"
    max_error: float  # relative to the largest expected number; inf where a number is missing or not finite
    tolerance: float
    is_blind: bool = False  # an array of zeros would be within the tolerance

    @property
    def is_equal(self) -> bool:
        """Returns whether the value agrees with its reference up to the tolerance.

        The error must be 0 where an array of zeros would also be within the tolerance.
        """
        return self.max_error == 0 or (self.max_error <= self.tolerance and not self.is_blind)

    @property
    def verdict(self) -> str:
        """Returns "equal", "unclear" (within the tolerance, but zeros would be as well) or "WRONG"."""
        is_near = self.max_error <= self.tolerance
        return "equal" if self.is_equal else "unclear" if is_near else "WRONG"


@dataclass(frozen=True)
class KernelSample:
    """How many blocks of a kernel's launches the simulator ran, and the comparison with a reference."""

    kernel: str
    launches: int
    blocks: int  # blocks of all launches
    simulated: int  # blocks that the simulator ran
    elements: int = 0  # number of compared elements
    # name of the reference that computed the other blocks; "" where the simulator ran all
    reference: str = ""
    finished: int = 0  # blocks that the reference computed: fewer than all where its time ran out
    comparison: Comparison | None = None  # of the launch with the largest error

    @property
    def is_right(self) -> bool:
        """Returns whether the simulator ran all blocks, or the compared elements equal the reference's.

        False where a reference ran and no element could be compared.
        """
        return not self.reference or (self.comparison is not None and self.comparison.is_equal)


@dataclass(frozen=True)
class ProgramReport:
    """The outcome of one run of a program: types, matmuls, trace, defects, comparisons and times."""

    entry: str
    arguments: tuple[str, ...]  # "64x?xf32", "index"
    results: tuple[str, ...]
    problems: tuple[Problem, ...]  # distinct matmuls, one script each
    streams: int  # streams that the program uses, the caller's included; 0: the program creates its streams
    trace: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()  # defects: unordered accesses, leaks, and similar
    comparisons: tuple[Comparison, ...] = ()
    times: ProgramTimes | None = None
    printed: str = ""  # by the program: its kernels, and the functions of MLIR's runner libraries
    is_simulated: bool = False  # the device detects defects, and has no clock
    is_interpreted: bool = False  # some kernels are interpreted on the host: results, but no times

    samples: tuple[KernelSample, ...] = ()  # per kernel, where launches were sampled
    work: DeviceWork | None = None  # None: no device ran it
    work_without_groups: DeviceWork | None = None  # of a program of groups, were it compiled as a whole
    resident_bytes: int = 0  # that a program of groups has on the device from call to call
    device_groups: tuple[DeviceGroup, ...] = ()  # of a program on a device that is computed as groups
    groups: tuple[ExplainedGroup, ...] = ()  # of a program on the host that is computed as groups
    why_no_groups: str = ""  # why a program is computed as a whole

    @property
    def is_right(self) -> bool:
        """Returns whether no defect was reported and every comparison and every sampled kernel is equal."""
        is_equal = all(comparison.is_equal for comparison in self.comparisons)
        return is_equal and not self.reports and all(sample.is_right for sample in self.samples)
