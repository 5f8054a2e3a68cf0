"""Checks while a CPU kernel is timed: inputs and C change, and each result is compared.

A sample times a kernel's work only, while inputs and C change in ways no kernel can predict. Before each
sample, untimed, inputs are drawn and C is filled with NaN or a number. Where caches are to be cold, operands
are evicted before each call, and calls are timed one by one. Within a sample, before each call, the sign of
another number of A or B is flipped (not of a fusion), and another element of C is set to NaN, at random. Then
the C of the last call is compared, untimed. Reasons: docs/decisions/verification-and-workers.md.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu.cold_caches import eviction_of
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.arrays import KernelArrays
from tuner.targets.cpu.side_effects import no_thread_started

LEAD_BELOW_S = 0.01  # a shorter sample follows untimed calls: filling and comparing emptied the caches
LEAD_CALLS = 4  # after which an L3 of 260 MiB holds 67 MB that each call reads; 1 call is not enough
READS_MUCH = 4e9  # bytes/s of operands; a kernel that reads less is as fast after one call
WHOLE_SAMPLES = 12  # after each of the first 12 samples all of C is compared
COMPARED_SHARE = 0.25  # of the samples' time: while comparing took less, all of C is compared
MORE_CALLS = 0.25  # of a sample's calls: added at most, at random: no kernel knows which call is last


@dataclass(frozen=True, eq=False)
class PartitionCalls:
    """Calls that run a kernel once: (address of the function, address of its argument) per thread."""

    calls: tuple[tuple[int, int], ...]
    operands: tuple[npt.NDArray[Any], ...]  # of the first call
    keeps: object  # lives as long as the addresses are called


@final
class TimingChecks:
    """A stopwatch of one kernel: changes inputs and C at random, and verifies C after each sample.

    After WHOLE_SAMPLES samples only some rows are verified if comparing all of C takes too long. For a kernel
    that reads C, C is restored before each call. Inputs of such a kernel, and of a fusion, do not change
    within a sample.
    """

    def __init__(
        self,
        team: ThreadTeam,
        prepared: PartitionCalls,
        arrays: KernelArrays,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``prepared``: the calls of the kernel on ``arrays``, one per thread; ``clock`` returns seconds."""
        self._evict = eviction_of(arrays.problem, prepared.operands)
        self._team = team
        self._prepared = prepared
        self._arrays = arrays
        self._rng = rng
        self._clock = clock
        self._reads_output = arrays.problem.after_product.reads_output
        self._last_s = 0.0  # of the last sample
        self._call_s = 0.0  # of a call in the last sample
        self._timed_s = 0.0  # of all samples
        self._compared_s = 0.0  # of comparing whole results
        self._samples = 0

    def __call__(self, inner: int) -> float:
        """Runs at least ``inner`` calls; returns the seconds per call.

        Raises CandidateError(VERIFY) for a wrong result, or a marked element of C that a call left unwritten;
        CandidateError(RUN) for threads that go on.
        """
        times = inner + int(self._rng.integers(int(inner * MORE_CALLS) + 1))
        self._arrays.fill(self._rng)
        if self._last_s < LEAD_BELOW_S and self._samples < WHOLE_SAMPLES:
            self._team.repeat(self._prepared.calls, 1)
            self._arrays.evaluate()
        if 0.0 < self._last_s < LEAD_BELOW_S:
            self._team.repeat(self._prepared.calls, self._lead_calls())
        self._arrays.overwrite_output(self._rng)
        with no_thread_started():
            if self._reads_output:
                skipped = self._timed_restoring(times)
            else:
                skipped = self._timed(times, self._arrays.marks(self._rng, times))
        self._timed_s += self._last_s
        if skipped:
            raise CandidateError(
                Stage.VERIFY, f"left an element of C unwritten in {skipped} of {times} calls"
            )
        self._samples += 1
        if self._samples > WHOLE_SAMPLES and self._compared_s > COMPARED_SHARE * self._timed_s:
            self._arrays.compare_some_rows(self._rng)
        else:
            start = self._clock()
            self._arrays.evaluate()
            self._compared_s += self._clock() - start
        self._call_s = self._last_s / times
        return self._call_s

    def _lead_calls(self) -> int:
        """Returns how many untimed calls precede a sample: caches then hold what they hold between calls."""
        reads_much = self._arrays.problem.bytes > READS_MUCH * self._call_s
        return LEAD_CALLS if reads_much else 1

    def _timed_restoring(self, times: int) -> int:
        """Times calls one by one, restoring C before each, untimed; returns 0, as no element is marked."""
        self._last_s = 0.0
        for _ in range(times):
            self._arrays.overwrite_output(self._rng)
            run = self._team.once(self._prepared.calls)
            if self._evict is not None:
                self._evict()
            start = self._clock()
            run()
            self._last_s += self._clock() - start
        return 0

    def _timed(self, times: int, marks: npt.NDArray[np.uint64]) -> int:
        """Times the calls of a sample, each with other marks; returns how many left theirs unwritten."""
        if self._evict is None:
            start = self._clock()
            skipped = self._team.watch(self._prepared.calls, times, marks)
            self._last_s = self._clock() - start
            return skipped
        skipped = 0
        self._last_s = 0.0
        for call in range(times):
            run = self._team.once(self._prepared.calls, marks[call % len(marks)][None])
            self._evict()
            start = self._clock()
            unwritten = run()
            self._last_s += self._clock() - start
            skipped += unwritten
        return skipped
