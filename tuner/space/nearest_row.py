"""The configuration of a feasible set that is nearest to a candidate, which need not be feasible."""

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate, Value
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob


def nearest_row(candidate: Candidate, feasible: FeasibleSet) -> int | None:
    """Returns the index of a candidate in a feasible set, or of the configuration nearest to it.

    None where the candidate's strategy has no configurations. The distance is a number of steps, summed over
    the knobs: one step leads to the next larger or smaller choice of a knob, or to any other text. Values
    between two choices count as a fraction of a step. Knobs that only one side has do not count. Of equally
    near configurations the first is returned. Configurations that break a preference are returned only for a
    candidate that is one of them, or where all of its strategy break a preference.
    """
    row = feasible.row_of(candidate)
    if row is not None:
        return row
    values, end = dict(candidate.choices), 0
    for space, index in zip(feasible.spaces, feasible.index, strict=True):
        end += len(index)
        if space.strategy == candidate.strategy and len(index):
            steps = np.zeros(len(index), np.float32)
            for place, knob in enumerate(space.knobs):
                if knob.name in values:
                    steps += steps_from(values[knob.name], knob)[index[:, place]]
            is_preferred = feasible.is_preferred[end - len(index) : end]
            rows = np.flatnonzero(is_preferred) if is_preferred.any() else np.arange(len(index))
            return end - len(index) + int(rows[np.argmin(steps[rows])])
    return None


def steps_from(value: Value, knob: Knob) -> npt.NDArray[np.float32]:
    """Returns the distance in steps from ``value`` to each choice of a knob.

    ``value`` need not be a choice; between two choices it counts as a fraction of a step, by the ratio of
    sizes, and outside of all choices as the nearest one. Another text has the distance 1.
    """
    if knob.is_text or isinstance(value, str):
        return np.array([choice != value for choice in knob.choices], np.float32)
    numbers = np.array([int(choice) for choice in knob.choices], np.float64)
    ordered = np.sort(numbers)
    ranks = np.searchsorted(ordered, numbers)
    # sizes compare by their ratio: 192 is about as far from 128 as from 256
    rank = np.interp(_scale(np.float64(value)), _scale(ordered), np.arange(len(ordered)))
    steps: npt.NDArray[np.float32] = np.abs(ranks - rank).astype(np.float32)
    return steps


def _scale(numbers: npt.NDArray[np.float64] | np.float64) -> npt.NDArray[np.float64]:
    scaled: npt.NDArray[np.float64] = np.sign(numbers) * np.log2(1 + np.abs(numbers))
    return scaled
