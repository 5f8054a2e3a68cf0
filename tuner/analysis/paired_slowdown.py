"""Whether code is slower than earlier code, from sessions in which both were timed interleaved."""

import enum
from dataclasses import dataclass

RESAMPLES = 2000  # of the bootstrap
SEED = 0  # fixed: equal samples give equal intervals
PERCENTILES = (0.5, 99.5)  # of the interval: tested after each session, so 99 % in place of 95 %
QUARTILE = 0.25
LEAST_SESSIONS = 5  # a bootstrap over fewer sessions says little


class Finding(enum.Enum):
    """Whether current code is slower than earlier code; UNCLEAR: more sessions are needed."""

    SLOWER = "slower"  # beyond the noise
    NOT_SLOWER = "not slower"  # a slowdown that matters is ruled out
    UNCLEAR = "unclear"  # more sessions may show one of both


@dataclass(frozen=True)
class InterleavedSession:
    """The samples of one timing session, in seconds per call: of earlier code, twice, and of current code.

    The three were timed interleaved: sample i of each belongs to round i. The constructor raises ValueError
    for an unequal number of samples, or none.
    """

    then_s: tuple[float, ...]  # the earlier code
    again_s: tuple[float, ...]  # the earlier code, loaded a second time
    now_s: tuple[float, ...]  # the current code

    def __post_init__(self) -> None:
        """Raises ValueError for samples of unequal length, or without any sample."""
        lengths = {len(self.then_s), len(self.again_s), len(self.now_s)}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"session: found {sorted(lengths)} samples, allowed equally many of each")


@dataclass(frozen=True)
class PairedSlowdown:
    """How much longer current code takes than earlier code, with a 99 % interval: 0.02 is 2 % longer."""

    median: float  # over sessions, of the relative difference of the lower quartiles
    interval: tuple[float, float]  # 99 %
    noise: float  # relative difference of the same code loaded twice, the upper end of its interval


@dataclass(frozen=True)
class SlowdownLimits:
    """The relative slowdowns that decide: code above ``tolerated`` is slower, below ``excluded`` is not."""

    tolerated: float = 0.02  # relative: another layout of equal code in memory makes such a difference
    excluded: float = 0.05  # relative: once such a slowdown is excluded, no more sessions are needed


def paired_slowdown(sessions: tuple[InterleavedSession, ...]) -> PairedSlowdown:
    """Returns how much longer the current code takes, with a percentile-bootstrap interval (Efron, 1979).

    Takes one session or more. Resamples sessions first and then their rounds (hierarchical bootstrap): each
    session loads code and arrays at new addresses, and a disturbance of a whole round cancels. Lower
    quartiles of a session are compared: other work on the machine only adds time, and may be in every second
    sample.
    """
    import numpy as np

    rng = np.random.default_rng(SEED)
    slower, noisy = [], []
    for session in sessions:
        draws = rng.integers(len(session.then_s), size=(RESAMPLES, len(session.then_s)))
        draws[0] = np.arange(len(session.then_s))  # the first is the sample itself
        then, again, current = (
            np.log(np.quantile(np.array(samples)[draws], QUARTILE, axis=1))
            for samples in (session.then_s, session.again_s, session.now_s)
        )
        slower.append(current - (then + again) / 2)
        noisy.append(again - then)
    chosen = rng.integers(len(sessions), size=(RESAMPLES, len(sessions)))
    chosen[0] = np.arange(len(sessions))
    rows = np.arange(RESAMPLES)[:, None]
    medians = np.expm1(np.median(np.array(slower).T[rows, chosen], axis=1))
    floors = np.abs(np.expm1(np.median(np.array(noisy).T[rows, chosen], axis=1)))
    low, high = np.percentile(medians, PERCENTILES)
    return PairedSlowdown(float(medians[0]), (float(low), float(high)), float(np.percentile(floors, 95)))


def lower_quartile(samples_s: tuple[float, ...]) -> float:
    """Returns the lower quartile of samples in seconds, the statistic that ``paired_slowdown`` compares."""
    import numpy as np

    return float(np.quantile(np.array(samples_s), QUARTILE))


def finding_of(slowdown: PairedSlowdown, sessions: int, limits: SlowdownLimits) -> Finding:
    """Returns the conclusion from a slowdown that was measured in ``sessions`` sessions.

    SLOWER if the whole interval lies above both the tolerated slowdown and the noise, NOT_SLOWER if the whole
    interval lies below the excluded slowdown, else UNCLEAR; UNCLEAR also with fewer than LEAST_SESSIONS (5).
    """
    if sessions < LEAST_SESSIONS:
        return Finding.UNCLEAR
    if slowdown.interval[0] > max(limits.tolerated, slowdown.noise):
        return Finding.SLOWER
    return Finding.NOT_SLOWER if slowdown.interval[1] < limits.excluded else Finding.UNCLEAR
