"""Outcomes of candidates as values: measurements, verdicts, failures, and the seconds of compiler passes."""

import itertools
import statistics
from dataclasses import dataclass

from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode, Resources
from tuner.core.errors import Failure
from tuner.core.machine import Conditions, HostConditions
from tuner.core.problem import Problem

PARTS = 4  # of one measurement, whose medians are compared
LEAST_OF_PART = 3  # samples: a median of fewer says no more than a sample


def drift(samples_s: tuple[float, ...]) -> float:
    """Returns by how much timings of the same work drifted, as a relative difference of medians.

    The samples are cut into two to four consecutive parts: the largest median of a part over the least, less
    1. 0 for fewer than six samples.
    """
    parts = min(PARTS, len(samples_s) // LEAST_OF_PART)
    if parts < 2:
        return 0.0
    bounds = [len(samples_s) * part // parts for part in range(parts + 1)]
    medians = [statistics.median(samples_s[low:high]) for low, high in itertools.pairwise(bounds)]
    return max(medians) / min(medians) - 1


@dataclass(frozen=True)
class MedianInterval:
    """The median of a list of numbers, and the 95 % confidence interval of that median."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class PassSeconds:
    """The seconds of one compiler pass, summed over all its runs in the compilation of one candidate."""

    name: str
    seconds: float
    runs: int


@dataclass(frozen=True)
class CompileSeconds:
    """Seconds of each compiler pass in the compilation of one candidate, with compiler and machine."""

    compiler: str  # Compiler.fingerprint
    machine: str  # Machine.name of the compiling machine
    passes: tuple[PassSeconds, ...]  # the longest first


@dataclass(frozen=True)
class Verdict:
    """The result of verifying a kernel: its output is compared with a float64 reference by element."""

    max_error: float  # largest |result - reference| / tolerance of that element; correct when <= 1
    elements: int  # number of compared elements; 0: nothing was verified, the notes say why
    notes: tuple[str, ...] = ()  # further observations, one line each: blocks left out, bank conflicts


@dataclass(frozen=True)
class OffsetTime:
    """The time of a CPU kernel while all its operands lay ``offset`` bytes past a cache line of 64 bytes."""

    offset: int
    median_s: float  # seconds per call
    interval_s: tuple[float, float]  # 95 % bootstrap interval of the median


@dataclass(frozen=True)
class Measurement:
    """Times of repeated runs of one compiled kernel on hardware; warm-up runs are not included."""

    samples_s: tuple[float, ...]  # seconds per call, one per repeat
    inner_calls: int  # calls per sample
    median_s: float
    interval_s: tuple[float, float]  # 95 % bootstrap interval of the median
    is_complete: bool = True  # False: early-stopped, far slower than the incumbent
    cold_median_s: float | None = None  # GPU: of single calls, the cache flushed before each
    conditions: Conditions | None = None  # GPU: where its sensors can be read
    host: HostConditions | None = None  # CPU: the same for all that were timed interleaved
    offsets: tuple[OffsetTime, ...] = ()  # CPU: of the fastest of a final re-measurement, interleaved

    @property
    def least_s(self) -> float:
        """Returns the fastest sample in seconds per call; the median where no samples are stored."""
        return min(self.samples_s, default=self.median_s)


@dataclass(frozen=True)
class Record:
    """The outcome of one candidate: a measurement, a verdict without a time, or a failure; with its code."""

    problem: Problem
    candidate: Candidate
    target: TargetName
    outcome: Measurement | Verdict | Failure
    script_sha256: str = ""  # of the bound script; "" when binding failed
    artifact_sha256: str = ""  # of the lowered code; "" when it was not compiled
    stage_s: tuple[tuple[str, float], ...] = ()  # (stage, seconds), in order
    reused_from: int | None = None  # trial whose outcome this is: same script or same code
    verdict: Verdict | None = None  # in addition to a Measurement
    resources: tuple[Resources, ...] = ()  # of kernels of a device; of failed trials as well
    kernel_code: KernelCode | None = None  # for a device, until it is stored; then ``Store.code`` returns it

    @property
    def status(self) -> str:
        """Returns 'measured' (correct and timed), 'verified' (correct, not timed) or 'failed'."""
        if isinstance(self.outcome, Measurement):
            return "measured"
        if isinstance(self.outcome, Verdict):
            return "verified"
        return "failed"

    @property
    def is_compiled_only(self) -> bool:
        return isinstance(self.outcome, Verdict) and self.outcome.elements == 0

    @property
    def median_s(self) -> float | None:
        """Returns the median seconds per call; None for a candidate that failed or was not timed."""
        if isinstance(self.outcome, Measurement):
            return self.outcome.median_s
        return None

    @property
    def correct_verdict(self) -> Verdict | None:
        if isinstance(self.outcome, Verdict):
            return self.outcome
        return self.verdict

    @property
    def code(self) -> str:
        """Returns a key for equal code: hash of the lowered code, else of the script, else the candidate."""
        return self.artifact_sha256 or self.script_sha256 or self.candidate.text
