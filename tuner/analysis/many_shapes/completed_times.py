"""Times of a matrix, the missing ones completed by predictions, which are marked and never stored."""

from dataclasses import dataclass

import numpy as np

from tuner.analysis.many_shapes.nearby_residuals import log_ratios, nearby_mean, row_means
from tuner.analysis.many_shapes.time_matrix import Flags, Numbers, TimeMatrix

WIDTH_OCTAVES = 2.0  # of the weights of other problems: wide, since a search leaves few times near by


@dataclass(frozen=True, eq=False)
class CompletedTimes:
    """Logarithms of times: measured where there is a measurement, else predicted by the corrected model."""

    logs: Numbers  # [problem, column], of seconds; inf: not measured, and the cost model says nothing
    is_predicted: Flags  # [problem, column]; True: no measurement


def completed_times(matrix: TimeMatrix) -> CompletedTimes:
    """Returns the log times of a matrix, with missing ones predicted.

    A prediction is the cost model's, corrected by the residual of the configuration on similar problems, at
    the level of the problem's measured times; of a problem without any, at the mean level of the others.
    """
    is_timed = matrix.is_timed()
    ratios = log_ratios(matrix)
    levels = row_means(ratios)
    centred, octaves = ratios - levels[:, None], matrix.log_sizes()
    others = float(levels[np.isfinite(levels)].mean()) if np.isfinite(levels).any() else 0.0
    corrections = [nearby_mean(centred, octaves, at, WIDTH_OCTAVES) for at in octaves]
    predicted = (
        np.log(matrix.model_costs())
        + np.where(np.isfinite(levels), levels, others)[:, None]
        + np.array(corrections).reshape(is_timed.shape)
    )
    logs = np.where(is_timed, np.log(matrix.times()), predicted)
    return CompletedTimes(logs, ~is_timed)
