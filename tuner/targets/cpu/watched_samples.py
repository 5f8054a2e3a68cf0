"""Samples of a kernel that pay for its work only: inputs and C change where the kernel cannot foresee it.

Before each sample, untimed, inputs are drawn and C is filled with NaN or ones. Within one, each call finds
another number of A or B of other sign, and another element of C that is NaN, at random places.
After it, untimed, what the last call left is compared. Why so: docs/decisions/0029-watched-samples.md.
"""

import time
from collections.abc import Callable
from typing import final

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.partition_calls import PartitionCalls
from tuner.targets.cpu.started_threads import no_thread_started
from tuner.targets.problem_arrays import ProblemArrays

LEAD_BELOW_S = 0.01  # a shorter sample follows an untimed call: ``fill`` drove data out of the caches
WHOLE_SAMPLES = 12  # after each of the first of which all of C is compared
COMPARED_SHARE = 0.25  # of the time of the samples, up to which later ones are compared wholly too
MORE_CALLS = 0.25  # of a sample, up to which it is longer than asked: its last call is not to be foreseen


@final
class WatchedSamples:
    """A stopwatch, see ``tuner.runtime.timing``, of one kernel on the arrays of its problem."""

    def __init__(
        self,
        team: ThreadTeam,
        prepared: PartitionCalls,
        arrays: ProblemArrays,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Takes the calls of the kernel on ``arrays``, one for each thread."""
        self._team = team
        self._prepared = prepared
        self._arrays = arrays
        self._rng = rng
        self._clock = clock
        self._last_s = 0.0  # of the last sample
        self._timed_s = 0.0  # of all samples
        self._compared_s = 0.0  # of comparing whole results
        self._samples = 0

    def __call__(self, inner: int) -> float:
        """Returns the seconds per call of at least ``inner`` calls. Raises CandidateError(VERIFY)."""
        times = inner + int(self._rng.integers(int(inner * MORE_CALLS) + 1))
        self._arrays.fill(self._rng)
        if self._last_s < LEAD_BELOW_S:
            self._team.repeat(self._prepared.calls, 1)
            if self._samples < WHOLE_SAMPLES:
                self._arrays.evaluate()
        self._arrays.cover(self._rng)
        marks = self._arrays.marks(self._rng, times)
        with no_thread_started():
            start = self._clock()
            skipped = self._team.watch(self._prepared.calls, times, marks)
            self._last_s = self._clock() - start
        self._timed_s += self._last_s
        if skipped:
            raise CandidateError(
                Stage.VERIFY, f"left an element of C unwritten in {skipped} of {times} calls"
            )
        self._check()
        return self._last_s / times

    def _check(self) -> None:
        """Compares all of C; after many samples only some rows, unless that took little of their time."""
        self._samples += 1
        if self._samples > WHOLE_SAMPLES and self._compared_s > COMPARED_SHARE * self._timed_s:
            self._arrays.glance(self._rng)
            return
        start = self._clock()
        self._arrays.evaluate()
        self._compared_s += self._clock() - start
