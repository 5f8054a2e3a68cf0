"""Evaluation of the order in which points would be measured, on a space whose every time is known."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

FIRST = (1, 8, 16)  # numbers of measured points after which the regret is reported
EVALUATED_FIRST = 8
LEAST_CORRELATION = 0.8
CONFIDENCE = 0.95
DRAWS = 2000


@dataclass(frozen=True)
class Ordering:
    """Scores of an order by predictions."""

    points: int
    rank_correlation: float  # Spearman, of predictions and times
    regret: tuple[
        tuple[int, float], ...
    ]  # after so many points: how much slower the best of them is, relatively
    random_regret: tuple[tuple[int, float], ...]  # the same in the mean of random orders
    beats_random: (
        float  # share of draws of EVALUATED_FIRST points that are not faster than the first of the order
    )

    @property
    def is_accepted(self) -> bool:
        """True if candidates should be measured in this order."""
        return self.rank_correlation >= LEAST_CORRELATION and self.beats_random >= CONFIDENCE


def ordering(predicted: Numbers, times_s: Numbers, rng: np.random.Generator) -> Ordering:
    """Evaluates predictions, smaller is better, against times.

    Points with a non-finite value are left out.
    """
    is_known = np.isfinite(predicted) & np.isfinite(times_s)
    costs, times = predicted[is_known], times_s[is_known]
    ordered, optimum = times[np.argsort(costs, kind="stable")], times.min()
    draws = {first: _draws(times, first, rng) for first in FIRST}
    return Ordering(
        points=len(times),
        rank_correlation=rank_correlation(costs, times),
        regret=tuple((first, float(ordered[:first].min() / optimum - 1)) for first in FIRST),
        random_regret=tuple((first, float(draws[first].mean() / optimum - 1)) for first in FIRST),
        beats_random=float(np.mean(ordered[:EVALUATED_FIRST].min() <= draws[EVALUATED_FIRST])),
    )


def rank_correlation(costs: Numbers, times_s: Numbers) -> float:
    """Returns Spearman's coefficient; equal costs share their mean rank."""
    _, which, counts = np.unique(costs, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    return float(np.corrcoef(mean_ranks[which], np.argsort(np.argsort(times_s)))[0, 1])


def _draws(times: Numbers, count: int, rng: np.random.Generator) -> Numbers:
    """Returns the best of ``count`` random points, DRAWS times."""
    return np.array([rng.choice(times, min(count, len(times)), replace=False).min() for _ in range(DRAWS)])
