"""One round of timing: finalists that took turns, and what is known of how quiet the machine was."""

import datetime
from dataclasses import dataclass

from tuner.core.host_conditions import HostConditions
from tuner.core.record import Measurement
from tuner.core.runs import Baseline


@dataclass(frozen=True)
class RoundQuality:
    """How far the times of a round can be relied on."""

    noise: float | None  # A/A noise floor: relative difference that means nothing; None: not known
    disturbance: float  # relative: the largest of the noise and of what the machine did meanwhile
    unreliable: str  # why the figures mean nothing; "" where they can be relied on
    host: HostConditions | None = None  # CPU
    is_lost: bool = False  # it gave no times; ``unreliable`` says why

    @classmethod
    def lost(cls, reason: str) -> "RoundQuality":
        """Returns the quality of a round that failed or ran out of time, and so gave no times."""
        return cls(None, 0.0, f"the final re-measurement was lost: {reason}", is_lost=True)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Returns what orders rounds: the least is the quietest, which answers; lost ones come last."""
        return (self.is_lost, bool(self.unreliable), self.disturbance)


@dataclass(frozen=True)
class TimedRound:
    """A round as it was timed."""

    quality: RoundQuality
    times: tuple[tuple[int, Measurement], ...]  # by trial
    baseline: Baseline | None


@dataclass(frozen=True)
class StoredRound:
    """A round as a run keeps it, beside others."""

    number: int  # 0: of an older tuner, of which no conditions are known
    started: datetime.datetime  # UTC
    quality: RoundQuality
    is_answering: bool  # the quietest of its run
    of_trials: int = 0  # that the run had by then: an extended run has more
