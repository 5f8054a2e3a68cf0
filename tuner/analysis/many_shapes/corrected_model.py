"""Scores of configurations on a problem: the cost model, corrected by times on problems of similar sizes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

# benchmarks/results/many_shapes_replay.json: these values on 34 problems x 57 configurations
WIDTH = 8.0  # a problem at a distance of d octaves counts exp(-d * d / WIDTH)
SHRINKAGE = 0.5  # weight of the assumption that a configuration is as good as the cost model says
LEAST_TIMES = (
    2  # of a problem: with one time its mean cannot be separated from what the configuration is worth
)


@dataclass(frozen=True, eq=False)
class KnownTimes:
    """What was measured so far: times of configurations on problems, with the costs of the cost model."""

    costs: Numbers  # [problem, column], of the cost model; inf where there is none
    times_s: Numbers  # [problem, column]; nan: no time
    octaves: Numbers  # [problem, 3]: log2 of (m, n, k)


def corrected_scores(known: KnownTimes, costs: Numbers, octaves: Numbers, width: float = WIDTH) -> Numbers:
    """Returns a score for each configuration on one problem: the lower, the faster it is expected to be.

    The score is log(cost) plus a weighted mean of the residuals of the same configuration on the problems of
    ``known``. A residual is log(time / cost), less the mean over the problem. Problems near by count more
    (WIDTH), and the mean is drawn to 0 (SHRINKAGE).

    Args:
        known: The times so far, on any number of problems.
        costs: Costs of the cost model on the problem that is asked for [column].
        octaves: log2 of its (m, n, k) [3].
        width: A problem at a distance of d octaves counts exp(-d * d / width).
    """
    centred = residuals(known)
    is_known = np.isfinite(centred)
    times = is_known.sum(axis=1, keepdims=True)
    squares: Numbers = ((known.octaves - octaves) ** 2).sum(axis=1, keepdims=True)
    weights = np.where(is_known & (times >= LEAST_TIMES), np.exp(-squares / width), 0.0)
    total = (weights * np.where(is_known, centred, 0.0)).sum(axis=0)
    scores: Numbers = np.log(filled_costs(costs)) + total / (SHRINKAGE + weights.sum(axis=0))
    return scores


def residuals(known: KnownTimes) -> Numbers:
    """Returns log(time / cost) [problem, column], less the mean over the problem; nan without a time."""
    logs = log_ratios(known)
    centred: Numbers = logs - row_means(logs)[:, None]
    return centred


def log_ratios(known: KnownTimes) -> Numbers:
    """Returns log(time / cost) [problem, column]; nan without a time."""
    ratios: Numbers = np.log(known.times_s) - np.log(filled_costs(known.costs))
    return ratios


def row_means(table: Numbers) -> Numbers:
    """Returns the mean of the numbers of each row; 0 for a row of nan alone."""
    is_known = np.isfinite(table)
    means: Numbers = np.where(is_known, table, 0.0).sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    return means


def filled_costs(costs: Numbers) -> Numbers:
    """Returns the costs with the least cost of the problem (the last axis) where the model knows none.

    What has no model is a strategy for instructions of its own, whose first points are listed by hand:
    its configurations come early. Where the model knows none of the problem's costs, all are 1.
    """
    least = np.where(np.isfinite(costs), costs, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    least = np.where(np.isfinite(least), least, 1.0)
    filled: Numbers = np.where(np.isfinite(costs), costs, least)
    return filled
