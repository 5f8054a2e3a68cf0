"""Slowdowns with confidence intervals, of current code against earlier code.

``PairedSlowdown`` is of codes timed interleaved in sessions; ``RelativeSlowdown`` is of a recorded time, by
references timed then and now.
"""

import enum
from dataclasses import dataclass, replace

from tuner.core.candidate import RecordedRound

# numpy is imported by the functions that need it: ratios.py and with it the tables of results load without.
PAIRED_RESAMPLES = 2000  # of the bootstrap
SEED = 0  # fixed: equal samples give equal intervals
PERCENTILES = (0.5, 99.5)  # of the interval: tested after each session, so 99 % in place of 95 %
NOISE_PERCENTILE = 95
QUARTILE = 0.25
LEAST_SESSIONS = 5  # a bootstrap over fewer sessions says little
ACCEPTED = 0.05  # relative: the slowdown that is accepted where a user says nothing else
RESOLVED = 0.03  # relative: what interleaved sessions can distinguish
LAYOUT = 0.02  # relative: another layout of equal code in memory makes such a difference
LIBRARY = "the baseline library"  # drifts with clock, caches and memory, as a kernel does
REFERENCE_KERNEL = "the reference kernel"  # small packed panels: drifts with the clock and inner caches
RECORDED_TIME = "the recorded time"  # of another hour: drift does not cancel
_Samples = list[tuple[float, ...]]  # seconds per call, by session and sample


class Finding(enum.Enum):
    """The conclusion whether current code is slower than earlier code."""

    SLOWER = "slower"  # beyond the noise
    NOT_SLOWER = "not slower"  # a slowdown that matters is ruled out
    UNCLEAR = "unclear"  # more sessions may show one of the two


@dataclass(frozen=True)
class InterleavedSession:
    """The samples of one timing session, in seconds per call: of earlier code, twice, and of current code.

    Raises ValueError unless the three tuples have the same length, at least 1.
    """

    then_s: tuple[float, ...]  # the earlier code
    again_s: tuple[float, ...]  # the earlier code, loaded a second time
    now_s: tuple[float, ...]  # the current code

    def __post_init__(self) -> None:
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
    """Limits of the relative slowdown, with which the 99 % interval of a measured slowdown is compared.

    An interval above ``tolerated`` and above the noise shows a slowdown; an interval below ``excluded`` rules
    one out. See ``finding_of``.
    """

    tolerated: float
    excluded: float  # once such a slowdown is excluded, no more sessions are needed

    @classmethod
    def up_to(cls, max_slowdown: float = ACCEPTED) -> "SlowdownLimits":
        """Returns the limits for the largest slowdown that a user accepts (0.05 for 5 %).

        ``tolerated``: 3 points less (RESOLVED), at least 2 % (LAYOUT). ``excluded``: the middle of
        ``tolerated`` and ``max_slowdown``, at most ``max_slowdown``.
        """
        tolerated = max(LAYOUT, max_slowdown - RESOLVED)
        return cls(tolerated, min(max_slowdown, (tolerated + max_slowdown) / 2))


def paired_slowdown(sessions: tuple[InterleavedSession, ...]) -> PairedSlowdown:
    """Returns by which share the current code takes longer, with a 99 % interval by bootstrap (Efron, 1979).

    Resamples sessions, then their rounds, so that a disturbance of a round cancels. Compares lower quartiles,
    as other work on the machine only adds time.
    """
    import numpy as np

    rng = np.random.default_rng(SEED)
    slower = []
    noisy = []
    for session in sessions:
        draws = rng.integers(len(session.then_s), size=(PAIRED_RESAMPLES, len(session.then_s)))
        draws[0] = np.arange(len(session.then_s))  # the first is the sample itself
        then, again, current = (
            np.log(np.quantile(np.array(samples)[draws], QUARTILE, axis=1))
            for samples in (session.then_s, session.again_s, session.now_s)
        )
        slower.append(current - (then + again) / 2)
        noisy.append(again - then)
    chosen = rng.integers(len(sessions), size=(PAIRED_RESAMPLES, len(sessions)))
    chosen[0] = np.arange(len(sessions))
    rows = np.arange(PAIRED_RESAMPLES)[:, None]
    medians = np.expm1(np.median(np.array(slower).T[rows, chosen], axis=1))
    floors = np.abs(np.expm1(np.median(np.array(noisy).T[rows, chosen], axis=1)))
    low, high = np.percentile(medians, PERCENTILES)
    return PairedSlowdown(
        float(medians[0]), (float(low), float(high)), float(np.percentile(floors, NOISE_PERCENTILE))
    )


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
    if slowdown.interval[1] < limits.excluded:
        return Finding.NOT_SLOWER
    return Finding.UNCLEAR


@dataclass(frozen=True)
class RoundTimes:
    """The times of one session in which a recorded kernel is timed again, in seconds per call."""

    kernel_s: tuple[float, ...]  # one sample per round
    library_s: tuple[float, ...] | None  # in the same rounds; None: no library here, or another one
    panel_product_s: float | None  # the reference kernel, lower quartile


@dataclass(frozen=True)
class RelativeSlowdown:
    """How much longer code takes than recorded, relative to each reference that was timed both times."""

    by_reference: tuple[tuple[str, PairedSlowdown], ...]
    whole: PairedSlowdown  # relative to the geometric mean of the references

    @property
    def least(self) -> float:
        return min(slowdown.median for _name, slowdown in self.by_reference)

    @property
    def disagreement(self) -> float:
        return max(slowdown.median for _name, slowdown in self.by_reference) - self.least

    @property
    def cancels_drift(self) -> bool:
        """True if the baseline library is among the references: its time drifts as a kernel's does."""
        return any(name == LIBRARY for name, _slowdown in self.by_reference)


def relative_slowdown(recorded: RecordedRound, sessions: tuple[RoundTimes, ...]) -> RelativeSlowdown:
    """Returns how much longer a recorded kernel takes in today's sessions, relative to the references.

    References are the baseline library and the panel product, if they were timed then and now; if neither
    was, the recorded time itself.
    """
    expected = _expected(recorded, sessions)
    (_, by_first), (_, by_last) = expected[0], expected[-1]  # the same one twice, where there is one

    def slowdown_from(first: _Samples, last: _Samples) -> PairedSlowdown:
        # Times expected from two references stand where earlier code, timed twice, stands elsewhere: the mean
        # of the two logarithms makes the geometric mean of the references. Their difference is not noise.
        times = zip(first, last, (session.kernel_s for session in sessions), strict=True)
        paired = tuple(InterleavedSession(*time) for time in times)
        return replace(paired_slowdown(paired), noise=recorded.noise)

    by_reference = tuple((name, slowdown_from(times_s, times_s)) for name, times_s in expected)
    return RelativeSlowdown(by_reference, slowdown_from(by_first, by_last))


def _expected(recorded: RecordedRound, sessions: tuple[RoundTimes, ...]) -> list[tuple[str, _Samples]]:
    """Returns per reference (name, samples), the times that the kernel would take today.

    They are its recorded time, times the reference's time today, over the reference's recorded time. Samples
    are a list with a tuple of seconds per session.
    """
    libraries_s = []
    products_s = []
    ones = []
    for session in sessions:
        count = len(session.kernel_s)
        libraries_s.append(session.library_s or ())
        products_s.append(() if session.panel_product_s is None else (session.panel_product_s,) * count)
        ones.append((1.0,) * count)
    references: list[tuple[str, float, _Samples]] = []
    if recorded.library_s is not None and all(libraries_s):
        references.append((LIBRARY, recorded.library_s, libraries_s))
    if recorded.panel_product_s is not None and all(products_s):
        references.append((REFERENCE_KERNEL, recorded.panel_product_s, products_s))
    if not references:
        references.append((RECORDED_TIME, 1.0, ones))
    expected = []
    for name, then_s, now_s in references:
        expected.append((name, [_scaled(samples_s, recorded.kernel_s, then_s) for samples_s in now_s]))
    return expected


def _scaled(samples_s: tuple[float, ...], kernel_s: float, then_s: float) -> tuple[float, ...]:
    return tuple(kernel_s * seconds / then_s for seconds in samples_s)
