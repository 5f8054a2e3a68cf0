"""A library's entry: one problem and the schedule that was tuned for it."""

from dataclasses import dataclass

from tuner.analysis.comparison import Comparable, NotComparable
from tuner.core.candidate import Candidate
from tuner.core.kernel_program import KernelProgram
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.reliability import NOT_RECORDED, Reliability

NO_BASELINE = NotComparable("no baseline was timed in the same round")


@dataclass(frozen=True)
class LibraryEntry:
    """A problem with its best known transform script, and where the script comes from."""

    problem: Problem
    candidate: Candidate  # strategy and knobs that the script was bound from
    script: str  # the bound transform script, without a header
    machine: Machine  # that timed it
    threads: int
    median_s: float | None  # seconds per call, on ``machine``; None: verified in a simulator, not timed
    baseline: str  # name of the library that it was compared with; "": none
    baseline_s: float | None  # seconds per call of the baseline in the same round; None: not timed
    trial: int  # its number in the results database
    reliability: Reliability = NOT_RECORDED  # of the time
    compared: Comparable | NotComparable = NO_BASELINE  # the time with the baseline's
    program: KernelProgram | None = None  # of a GPU: what was verified; None: the script is compiled again

    @property
    def timed_s(self) -> float:
        """Returns the median seconds per call. Raises ValueError for an entry that was not timed."""
        if self.median_s is None:
            raise ValueError(f"trial {self.trial}: was not timed")
        return self.median_s


@dataclass(frozen=True)
class LibraryFile:
    """A file of an exported library."""

    name: str  # in the folder of the library, such as "library.mlir"
    content: bytes
