"""What the cost model gets wrong for a configuration, as measured on problems of similar sizes."""

import numpy as np

from tuner.analysis.many_shapes.time_matrix import Numbers, TimeMatrix

PRIOR = 0.5  # weight of "the model is right", in problems of equal sizes


def residuals(matrix: TimeMatrix) -> Numbers:
    """Returns log(time / model cost) [problem, column] less the mean of the problem; nan without both."""
    logs = log_ratios(matrix)
    means: Numbers = logs - row_means(logs)[:, None]
    return means


def log_ratios(matrix: TimeMatrix) -> Numbers:
    """Returns log(time / model cost) [problem, column]; nan where a time or a cost is missing."""
    costs = matrix.model_costs()
    ratios: Numbers = np.log(matrix.times()) - np.log(np.where(np.isfinite(costs), costs, np.nan))
    return ratios


def row_means(table: Numbers) -> Numbers:
    """Returns the mean of each row's numbers; nan for a row of nan alone."""
    known = np.isfinite(table)
    counts = known.sum(axis=1)
    means: Numbers = np.where(counts > 0, np.where(known, table, 0.0).sum(axis=1), np.nan) / np.maximum(
        counts, 1
    )
    return means


def nearby_mean(table: Numbers, octaves: Numbers, at: Numbers, width: float) -> Numbers:
    """Returns the weighted mean of each column of residuals over problems of sizes near ``at``.

    Args:
        table: residuals [problem, column]; nan where there is none.
        octaves: log2 of the sizes of the problems [problem, 3].
        at: log2 of the sizes asked for [3].
        width: octaves, the standard deviation of the weights, which are those of a normal distribution.

    A column without residuals nearby has 0: PRIOR pulls the mean to the model.
    """
    known = np.isfinite(table)
    distances = ((octaves - at) ** 2).sum(axis=1)
    weights = np.exp(-distances / (2 * width**2))[:, None] * known
    mean: Numbers = (weights * np.where(known, table, 0.0)).sum(axis=0) / (weights.sum(axis=0) + PRIOR)
    return mean
