"""One timing round: top trials timed interleaved, and how quiet the machine was meanwhile."""

import datetime
from dataclasses import dataclass

from tuner.core.host_conditions import HostConditions
from tuner.core.record import Measurement
from tuner.core.runs import Baseline


@dataclass(frozen=True)
class RoundQuality:
    """How reliable the times of a timing round are: its noise, its disturbance, and why not to rely on it."""

    noise: float | None  # A/A noise floor: relative differences below it mean nothing; None: not known
    disturbance: float  # relative: the largest of the noise, the drifts and the shares of lost processor time
    unreliable: str  # why the times cannot be relied on; "" where they can
    host: HostConditions | None = None  # CPU
    is_lost: bool = False  # True: the round gave no times; ``unreliable`` says why

    @classmethod
    def lost(cls, reason: str) -> "RoundQuality":
        """Returns the quality of a timing round without times, which failed or timed out for ``reason``."""
        return cls(None, 0.0, f"the final re-measurement was lost: {reason}", is_lost=True)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Returns the sort key (is lost, is unreliable, disturbance): the quietest round sorts first."""
        return (self.is_lost, bool(self.unreliable), self.disturbance)


@dataclass(frozen=True)
class TimedRound:
    """The result of one timing round before it is stored: times of trials and baseline, and quality."""

    quality: RoundQuality
    times: tuple[tuple[int, Measurement], ...]  # (id of the trial, its times)
    baseline: Baseline | None


@dataclass(frozen=True)
class StoredRound:
    """A timing round as stored with its run, without its times; a run may have several."""

    number: int  # 0: of an older tuner, which stored no conditions
    started: datetime.datetime  # UTC
    quality: RoundQuality
    is_answering: bool  # True: the quietest of its run, whose times are used
    of_trials: int = 0  # number of trials of the run at that time: an extended run has more
