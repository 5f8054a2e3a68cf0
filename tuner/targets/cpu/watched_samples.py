"""Samples of a kernel that time its work only, while inputs and C change in ways no kernel can predict.

Before each sample, untimed, inputs are drawn and C is filled with NaN or ones. Where caches are to be cold,
operands are evicted before each call, and calls are timed one by one. Within a sample, before each
call, the sign of another number of A or B is flipped and another element of C is set to NaN, at random
places. After the sample, untimed, the C of the last call is compared. Reasons:
docs/decisions/0029-watched-samples.md.
"""

import time
from collections.abc import Callable
from typing import final

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu.eviction import eviction_of
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.left_behind import no_thread_started
from tuner.targets.cpu.partition_calls import PartitionCalls
from tuner.targets.kernel_arrays import KernelArrays

LEAD_BELOW_S = 0.01  # a shorter sample follows an untimed call: ``fill`` drove data out of the caches
WHOLE_SAMPLES = 12  # after each of the first so many samples all of C is compared
COMPARED_SHARE = 0.25  # of the samples' time: while comparing took less, all of C is compared
MORE_CALLS = 0.25  # of a sample: at most so much longer than asked, at random: the last call is unpredictable


@final
class WatchedSamples:
    """A stopwatch of one kernel: runs the kernel a number of times, returns the seconds per call.

    Changes inputs and C between calls, and verifies C after each sample (see ``tuner.runtime.timing``).
    """

    def __init__(
        self,
        team: ThreadTeam,
        prepared: PartitionCalls,
        arrays: KernelArrays,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Takes the calls of the kernel on ``arrays``, one call for each thread."""
        self._evict = eviction_of(arrays.problem, (*arrays.operands, *prepared.weights))
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
        """Returns the seconds per call of at least ``inner`` calls.

        Raises CandidateError: VERIFY for a wrong C or an element that a call left unwritten, RUN for threads
        that the kernel started and that are still alive.
        """
        times = inner + int(self._rng.integers(int(inner * MORE_CALLS) + 1))
        self._arrays.fill(self._rng)
        if self._last_s < LEAD_BELOW_S:
            self._team.repeat(self._prepared.calls, 1)
            if self._samples < WHOLE_SAMPLES:
                self._arrays.evaluate()
        self._arrays.overwrite_output(self._rng)
        marks = self._arrays.marks(self._rng, times)
        with no_thread_started():
            skipped = self._timed(times, marks)
        self._timed_s += self._last_s
        if skipped:
            raise CandidateError(
                Stage.VERIFY, f"left an element of C unwritten in {skipped} of {times} calls"
            )
        self._check()
        return self._last_s / times

    def _timed(self, times: int, marks: npt.NDArray[np.uint64]) -> int:
        """Runs and times the calls of a sample; returns how many left C unwritten."""
        if self._evict is None:
            start = self._clock()
            skipped = self._team.watch(self._prepared.calls, times, marks)
            self._last_s = self._clock() - start
            return skipped
        skipped, self._last_s = 0, 0.0
        for call in range(times):
            run = self._team.once(self._prepared.calls, marks[call % len(marks)][None])
            self._evict()
            start = self._clock()
            unwritten = run()
            self._last_s += self._clock() - start
            skipped += unwritten
        return skipped

    def _check(self) -> None:
        """Compares all of C; after WHOLE_SAMPLES only some rows, unless comparing took little of the time."""
        self._samples += 1
        if self._samples > WHOLE_SAMPLES and self._compared_s > COMPARED_SHARE * self._timed_s:
            self._arrays.compare_some_rows(self._rng)
            return
        start = self._clock()
        self._arrays.evaluate()
        self._compared_s += self._clock() - start
