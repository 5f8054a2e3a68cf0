"""The outcomes of a search as standardized numbers for a model."""

import math

import numpy as np
import numpy.typing as npt

from tuner.samplers.proposals import Pool

SLOW_QUANTILE = 0.5  # slower times are clipped to this quantile: how slow a slow row is matters little


def standardized(pool: Pool, rows: list[int]) -> npt.NDArray[np.float64]:
    """Returns the logarithms of the times of ``rows``, scaled to mean 0 and standard deviation 1.

    For fitting a model; ``rows`` are indices of configurations, at least one. Failed and pending ones get the
    slowest time; times slower than the median are first replaced by the median. All are 0 where the times are
    then equal.
    """
    outcomes = [pool.outcomes.get(row) for row in rows]
    times = [time for time in outcomes if time is not None]
    least = min((time for time in times if time > 0), default=1.0) / 2  # a time of 0 has no logarithm
    slowest = max(times, default=1.0)
    logs = np.array([math.log(max(least, slowest if time is None else time)) for time in outcomes])
    logs = np.minimum(logs, np.quantile(logs, SLOW_QUANTILE))
    deviation = float(logs.std())
    scaled: npt.NDArray[np.float64] = (logs - logs.mean()) / (deviation if deviation > 0 else 1.0)
    return scaled


def rows_to_model(pool: Pool, count: int, limit: int) -> list[int]:
    """Returns which configurations a model is fitted to: the first ``count`` that were proposed, by index.

    Of more than ``limit``, only the ``limit // 2`` fastest and the latest ones, at most ``limit`` in all, in
    the order of proposals.
    """
    rows = pool.order[:count]
    if count <= limit:
        return rows
    among = set(rows)
    fastest = [row for row in pool.fastest() if row in among][: limit // 2]
    kept = {*fastest, *rows[-(limit - limit // 2) :]}
    return [row for row in rows if row in kept]
