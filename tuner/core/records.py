"""Outcomes of candidates as values: measurements, verdicts, failures, and the seconds of compiler passes.

``Record`` is the outcome of one candidate: a ``Measurement``, a ``Verdict`` or a ``Failure``. A measurement
has the conditions under which it was taken: ``Conditions`` of a GPU, ``HostConditions`` of the host.
"""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuner.core.candidate import Candidate, TargetName
from tuner.core.compiled_code import KernelCode, Resources
from tuner.core.errors import Failure
from tuner.core.problem import Problem
from tuner.core.serialization import stored_as

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
class GpuState:
    """One reading of a GPU's sensors; None for a sensor that the GPU does not report."""

    sm_clock_hz: float | None
    memory_clock_hz: float | None
    temperature_c: float | None
    power_w: float | None
    slowdowns: tuple[str, ...] = ()  # why the clocks are held down: "power cap", "thermal (hardware)", ...


@dataclass(frozen=True)
class Span:
    """A summary of the sensor readings that were taken between the rounds of one measurement."""

    readings: int
    lowest_sm_clock_hz: float | None  # None: not reported
    highest_sm_clock_hz: float | None
    slowdowns: tuple[str, ...] = ()  # of any reading

    @classmethod
    def of(cls, states: Sequence[GpuState]) -> "Span":
        """Summarizes sensor readings; clocks are None if no reading reports one."""
        clocks = [state.sm_clock_hz for state in states if state.sm_clock_hz is not None]
        lowest, highest = (min(clocks), max(clocks)) if clocks else (None, None)
        return cls(len(states), lowest, highest, _distinct(states))


@dataclass(frozen=True)
class Conditions:
    """A GPU's sensor readings before and after one measurement, and a summary of those in between, if any."""

    before: GpuState
    after: GpuState
    between: Span | None = None

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """Returns why the GPU held its clocks down at any reading, each reason once; () for no slowdown."""
        return _distinct([self.before, *([self.between] if self.between else []), self.after])


def _distinct(readings: Sequence[GpuState | Span]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for reading in readings for reason in reading.slowdowns))


@dataclass(frozen=True)
class HostConditions:
    """Load while something was timed; a share is a fraction (0 to 1) of the wall time of the measurement."""

    load_average: float  # of the last minute, when the measurement began
    others_cores: float  # processors that other programs kept busy, on average
    waited_share: float  # a timed thread was ready to run, and another ran in its place
    stolen_share: float  # a processor was given away by the hypervisor
    throttled_share: float  # the quota of a control group held the timed processes back
    # median time of the reference kernel (canary), the same code in each measurement
    reference_s: float = field(metadata=stored_as("anchor_s"))
    # relative, of the reference kernel's median between parts of the measurement
    reference_drift: float = field(metadata=stored_as("anchor_drift"))
    panel_product_s: float | None = None  # lower quartile, a product of small packed panels; None: not timed


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
        """Returns 'measured' (correct and timed), 'verified' (correct or compiled, untimed) or 'failed'."""
        if isinstance(self.outcome, Measurement):
            return "measured"
        if isinstance(self.outcome, Verdict):
            return "verified"
        return "failed"

    @property
    def is_compiled_only(self) -> bool:
        """Returns whether the candidate was compiled but not run: its verdict compared no element."""
        return isinstance(self.outcome, Verdict) and self.outcome.elements == 0

    @property
    def median_s(self) -> float | None:
        """Returns the median seconds per call; None for a candidate that failed or was not timed."""
        if isinstance(self.outcome, Measurement):
            return self.outcome.median_s
        return None

    @property
    def correct_verdict(self) -> Verdict | None:
        """Returns the verdict of a correct candidate, timed or not; None where it failed or has none."""
        if isinstance(self.outcome, Verdict):
            return self.outcome
        return self.verdict

    @property
    def code(self) -> str:
        """Returns a key for equal code: hash of the lowered code, else of the script, else the candidate."""
        return self.artifact_sha256 or self.script_sha256 or self.candidate.text
