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

    @property
    def rank(self) -> tuple[bool, float]:
        """Returns what orders rounds: the least is the quietest, which answers."""
        return (bool(self.unreliable), self.disturbance)


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
