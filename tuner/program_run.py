"""One run of a host program, asked for and reported: what crosses to the process that runs it and back."""

from dataclasses import dataclass
from typing import Literal

from tuner.problem import Problem
from tuner.program_times import ProgramTimes

Form = Literal["streams", "tokens", "sync"]
FORMS: tuple[Form, ...] = ("streams", "tokens", "sync")
ORDERS = ("fifo", "lifo", "random")


@dataclass(frozen=True)
class ProgramRequest:
    """What to run and how."""

    text: str  # of the payload
    target: str  # "simulator:sm_90", "cuda:sm_90", "cpu"
    entry: str | None = None  # None: the only public function
    form: Form = "streams"
    scripts: tuple[tuple[Problem, str], ...] = ()  # problems without one get a default
    is_plain: bool = False  # no scripts at all: matmuls become loops like everything else
    arguments: tuple[str, ...] = ()  # "2=7", "0=[8,4]zeros"; what is not named is random
    seed: int = 0  # of random arguments, and of a random order
    order: str = "fifo"  # of work that is ready, on the simulator
    is_traced: bool = False
    is_compared: bool = False  # with the same payload on the host
    is_timed: bool = True  # on hardware
    is_pinned: bool = False  # host memory that copies use


@dataclass(frozen=True)
class Comparison:
    """One result, or argument that was written, against the same of the payload on the host."""

    name: str  # "result 0", "argument 2"
    max_error: float  # over the largest number expected; inf for what is not there or not a number
    tolerance: float
    is_blind: bool = False  # nothing but zeros would be within the tolerance as well

    @property
    def is_equal(self) -> bool:
        """Tells whether both are the same but for rounding; not where zeros would be, unless to the bit."""
        return self.max_error == 0 or (self.max_error <= self.tolerance and not self.is_blind)

    @property
    def verdict(self) -> str:
        """Returns the same as a word."""
        is_near = self.max_error <= self.tolerance
        return "equal" if self.is_equal else "unclear" if is_near else "WRONG"


@dataclass(frozen=True)
class ProgramReport:
    """What became of a run."""

    entry: str
    arguments: tuple[str, ...]  # "64x?xf32", "index"
    results: tuple[str, ...]
    problems: tuple[Problem, ...]  # distinct matmuls, each by one script
    streams: int  # that the program uses, the caller's included; 0: none is told
    trace: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()  # what nothing orders, leaks, and the like
    comparisons: tuple[Comparison, ...] = ()
    times: ProgramTimes | None = None

    @property
    def is_right(self) -> bool:
        """Tells whether nothing was found that is wrong."""
        return not self.reports and all(comparison.is_equal for comparison in self.comparisons)
