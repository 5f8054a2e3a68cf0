"""Times of a matrix, the missing ones completed by predictions, which are marked and never stored."""

from dataclasses import dataclass

import numpy as np

from tuner.analysis.many_shapes.corrected_model import KnownTimes, corrected_scores, log_ratios, row_means
from tuner.analysis.many_shapes.time_matrix import Flags, Numbers, TimeMatrix


@dataclass(frozen=True, eq=False)
class CompletedTimes:
    """Logarithms of times: measured where there is a measurement, else predicted by the corrected model."""

    logs: Numbers  # [problem, column], of seconds
    is_predicted: Flags  # [problem, column]; True: no measurement


def completed_times(matrix: TimeMatrix) -> CompletedTimes:
    """Returns the log times of a matrix, with missing ones predicted.

    A prediction is the score of the corrected model, at the level of the problem's measured times; of a
    problem without any, at the mean level of the others.
    """
    known, is_timed = known_times(matrix), matrix.is_timed()
    levels, has_times = row_means(log_ratios(known)), is_timed.any(axis=1)
    usual = float(levels[has_times].mean()) if has_times.any() else 0.0
    scores = [
        corrected_scores(known, costs, octaves)
        for costs, octaves in zip(known.costs, known.octaves, strict=True)
    ]
    predicted = np.array(scores).reshape(is_timed.shape) + np.where(has_times, levels, usual)[:, None]
    return CompletedTimes(np.where(is_timed, np.log(matrix.times()), predicted), ~is_timed)


def known_times(matrix: TimeMatrix) -> KnownTimes:
    """Returns the matrix as the corrected model takes it."""
    return KnownTimes(matrix.model_costs(), matrix.times(), matrix.log_sizes())
