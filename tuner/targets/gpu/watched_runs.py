"""Samples of a program on a GPU that pay for its work only: inputs and C change before each, by chance."""

from typing import final

import numpy as np

from tuner.targets.gpu.event_timing import MIN_SAMPLES, AbstractSampleWatch
from tuner.targets.gpu.problem_arrays import GpuProblemArrays


@final
class WatchedRuns(AbstractSampleWatch):
    """Covers C and turns one number before each sample of a program; judges C after some of them.

    Which ones is not to be foreseen: one at least of any MIN_SAMPLES in a row.
    """

    def __init__(self, arrays: GpuProblemArrays, rng: np.random.Generator) -> None:
        """Takes the arrays that the program works on, uploaded."""
        self._arrays = arrays
        self._rng = rng
        self._unjudged = self._draw_unjudged()

    def before(self, stream: int) -> None:
        """Changes the arrays on the device."""
        self._arrays.prepare_sample(self._rng, stream)

    def after(self, stream: int) -> None:
        """Undoes the change of the inputs. Raises CandidateError(VERIFY) for a wrong C."""
        is_judged = not self._unjudged
        self._arrays.end_sample(self._rng, stream, is_judged=is_judged)
        self._unjudged = self._draw_unjudged() if is_judged else self._unjudged - 1

    def _draw_unjudged(self) -> int:
        """Draws how many samples go by before one is judged."""
        return int(self._rng.integers(MIN_SAMPLES))
