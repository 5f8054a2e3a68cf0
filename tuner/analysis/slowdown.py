"""How much longer one measurement is than another, with a confidence interval."""

from dataclasses import dataclass

from tuner.core.record import Measurement

RESAMPLES = 1000  # of the bootstrap
SEED = 0  # fixed: equal samples give equal intervals


@dataclass(frozen=True)
class Slowdown:
    """The relative difference of two median times, with its 95 % interval: 0.02 is 2 % longer."""

    median: float
    interval: tuple[float, float]  # 95 %


def slowdown(measurement: Measurement, fastest: Measurement) -> Slowdown:
    """Returns how much longer ``measurement`` is than ``fastest``, which is any other measurement.

    The interval is from a percentile bootstrap (Efron, 1979). The final re-measurement takes one sample of
    each trial per round: where both measurements have equally many samples, rounds are resampled, so that a
    disturbance of a whole round cancels.
    """
    import numpy as np

    rng = np.random.default_rng(SEED)
    ours, theirs = np.array(measurement.samples_s), np.array(fastest.samples_s)
    draws = rng.integers(len(ours), size=(RESAMPLES, len(ours)))
    others = draws
    if len(ours) != len(theirs):
        others = rng.integers(len(theirs), size=(RESAMPLES, len(theirs)))
    ratios = np.median(ours[draws], axis=1) / np.median(theirs[others], axis=1) - 1
    low, high = np.percentile(ratios, (2.5, 97.5))
    return Slowdown(measurement.median_s / fastest.median_s - 1, (float(low), float(high)))
