"""The request for one run of a program and its report: what crosses to the process that runs it and back."""

from dataclasses import dataclass, replace

from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.core.target_name import TargetName
from tuner.programs.options import PROGRAM_DEFAULTS, ProgramOptions
from tuner.programs.times import ProgramTimes


@dataclass(frozen=True)
class ProgramRequest:
    """What is run, and how."""

    text: str  # of the payload
    target: TargetName
    entry: str | None = None  # None: main, or the only public function
    options: ProgramOptions = PROGRAM_DEFAULTS
    # Problems without a script get a default; None: no scripts at all, matmuls become loops.
    scripts: tuple[tuple[Problem, str], ...] | None = ()
    arguments: tuple[str, ...] = ()  # "2=7", "0=[8,4]zeros"; what is not named is random
    is_compared: bool = False  # with the same payload on the host
    is_timed: bool = True  # on hardware

    @property
    def bound(self) -> dict[Problem, Script] | None:
        """Returns the scripts as a compiler takes them."""
        return None if self.scripts is None else {key: Script.of(text) for key, text in self.scripts}


def without_scripts(request: ProgramRequest) -> ProgramRequest:
    """Returns the request for the same program as loops."""
    return replace(request, scripts=None)


@dataclass(frozen=True)
class Comparison:
    """One result or written argument beside the same of the payload on the host."""

    name: str  # "result 0", "argument 2"
    max_error: float  # over the largest number expected; inf for what is not there or not a number
    tolerance: float
    is_blind: bool = False  # nothing but zeros would be within the tolerance as well

    @property
    def is_equal(self) -> bool:
        """Tells whether both are the same up to rounding; to the bit where zeros would pass as well."""
        return self.max_error == 0 or (self.max_error <= self.tolerance and not self.is_blind)

    @property
    def verdict(self) -> str:
        """Returns the outcome of the comparison as a word."""
        is_near = self.max_error <= self.tolerance
        return "equal" if self.is_equal else "unclear" if is_near else "WRONG"


@dataclass(frozen=True)
class KernelSample:
    """How much of a kernel's launches the simulator ran, and what that was compared with."""

    kernel: str
    launches: int
    blocks: int  # of all launches
    simulated: int  # of them
    elements: int = 0  # that were compared
    reference: str = ""  # that did the others too; "" where the simulator did all
    finished: int = 0  # by the reference: less than all where it was out of time
    comparison: Comparison | None = None  # of the worst launch

    @property
    def is_right(self) -> bool:
        """Tells whether all was simulated, or what was compared is equal."""
        return not self.reference or (self.comparison is not None and self.comparison.is_equal)


@dataclass(frozen=True)
class ProgramReport:
    """What one run gave and how it was judged."""

    entry: str
    arguments: tuple[str, ...]  # "64x?xf32", "index"
    results: tuple[str, ...]
    problems: tuple[Problem, ...]  # distinct matmuls, each by one script
    streams: int  # that the program uses, the caller's included; 0: it creates its own
    trace: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()  # what nothing orders, leaks, and the like
    comparisons: tuple[Comparison, ...] = ()
    times: ProgramTimes | None = None
    printed: str = ""  # by the program: its kernels, and MLIR's runner functions
    is_simulated: bool = False  # the device looks for defects, and has no clock
    is_interpreted: bool = False  # some of its kernels are, which gives results and no times

    samples: tuple[KernelSample, ...] = ()  # of each kernel, where launches were sampled

    @property
    def is_right(self) -> bool:
        """Tells whether no report, no comparison and no sample found the run wrong."""
        is_equal = all(comparison.is_equal for comparison in self.comparisons)
        return is_equal and not self.reports and all(sample.is_right for sample in self.samples)
