"""The row of a feasible set that is most like a candidate that need not be one."""

import numpy as np
import numpy.typing as npt

from tuner.core.candidate import Candidate, Value
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob


def nearest_row(candidate: Candidate, feasible: FeasibleSet) -> int | None:
    """Returns the candidate's row, or the nearest one of its strategy; None where there is no such strategy.

    Near means few steps in all: a step leads to the next larger or smaller choice of a knob, or to any other
    text. Values between two choices are part of a step away. Knobs that only one side has do not count.
    Of rows equally near it is the first. Only the candidate's own row may be one that comes last.
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
    """Returns by choice how many steps it is away from a value, which need not be one."""
    if knob.is_text or isinstance(value, str):
        return np.array([choice != value for choice in knob.choices], np.float32)
    numbers = np.array([int(choice) for choice in knob.choices], np.float64)
    ordered = np.sort(numbers)
    ranks = np.searchsorted(ordered, numbers)
    # sizes are alike by their ratio: 192 is about as far from 128 as from 256
    rank = np.interp(_scale(np.float64(value)), _scale(ordered), np.arange(len(ordered)))
    steps: npt.NDArray[np.float32] = np.abs(ranks - rank).astype(np.float32)
    return steps


def _scale(numbers: npt.NDArray[np.float64] | np.float64) -> npt.NDArray[np.float64]:
    scaled: npt.NDArray[np.float64] = np.sign(numbers) * np.log2(1 + np.abs(numbers))
    return scaled
