"""What became of a candidate: a measurement, a verdict, or the stage it failed at and why."""

from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.errors import Failure
from tuner.core.gpu_conditions import Conditions
from tuner.core.host_conditions import HostConditions
from tuner.core.kernel_program import KernelProgram, Resources
from tuner.core.problem import Problem
from tuner.core.target_name import TargetName


@dataclass(frozen=True)
class Verdict:
    """A result compared with the float64 reference, element by element."""

    max_error: float  # largest |result - reference| / tolerance of that element; correct when <= 1
    elements: int  # compared
    notes: tuple[str, ...] = ()  # what else was seen, one line each: blocks left out, bank conflicts


@dataclass(frozen=True)
class Measurement:
    """Times of repeated runs of one artifact on hardware, warm-ups left out."""

    samples_s: tuple[float, ...]  # seconds per call, one per repeat
    inner_calls: int  # calls per sample
    median_s: float
    interval_s: tuple[float, float]  # 95 % bootstrap interval of the median
    is_complete: bool = True  # False: stopped early, hopeless against the incumbent
    cold_median_s: float | None = None  # GPU: of single calls, the cache flushed before each
    conditions: Conditions | None = None  # GPU: where its sensors can be read
    host: HostConditions | None = None  # CPU: of all that took turns, the same

    @property
    def least_s(self) -> float:
        """Returns the fastest sample: of an early-stopped measurement nothing else is known."""
        return min(self.samples_s, default=self.median_s)


@dataclass(frozen=True)
class Record:
    """One row of the tuning history: a candidate and what became of it."""

    problem: Problem
    candidate: Candidate
    target: TargetName
    outcome: Measurement | Verdict | Failure
    script_sha256: str = ""  # of the bound script; "" when binding failed
    artifact_sha256: str = ""  # of the lowered code; "" when it was not compiled
    stage_s: tuple[tuple[str, float], ...] = ()  # (stage, seconds), in order
    reused_from: int | None = None  # trial whose outcome this is: same script or same code
    verdict: Verdict | None = None  # beside a Measurement
    resources: tuple[Resources, ...] = ()  # of GPU kernels, where ptxas told them; failed trials' as well
    program: KernelProgram | None = None  # GPU: on its way to the store, which gives it by ``Store.program``

    @property
    def status(self) -> str:
        """Returns 'measured', 'verified' or 'failed'."""
        if isinstance(self.outcome, Measurement):
            return "measured"
        return "verified" if isinstance(self.outcome, Verdict) else "failed"

    @property
    def median_s(self) -> float | None:
        """Returns the median in seconds; None for anything that was not timed."""
        return self.outcome.median_s if isinstance(self.outcome, Measurement) else None

    @property
    def correct_verdict(self) -> Verdict | None:
        """Returns what verification found: the outcome where nothing was timed, else what is beside it."""
        return self.outcome if isinstance(self.outcome, Verdict) else self.verdict

    @property
    def code(self) -> str:
        """Returns what tells generated code apart: its hash, or for want of one its own candidate."""
        return self.artifact_sha256 or self.script_sha256 or self.candidate.text
