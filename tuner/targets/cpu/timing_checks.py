"""Checks while a CPU kernel is timed: changing inputs, other alignments, side effects.

A sample times a kernel's work only, while inputs and C change in ways no kernel can predict. Before each
sample, untimed, inputs are drawn and C is filled with NaN or a number. Where caches are to be cold, operands
are evicted before each call, and calls are timed one by one. Within a sample, before each call, the sign of
another number of A or B is flipped (not of a fusion), and another element of C is set to NaN, at random. Then
the C of the last call is compared, untimed. Reasons: docs/decisions/verification-and-workers.md.
"""

import contextlib
import ctypes
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Effort
from tuner.core.problem import Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.records import Measurement, OffsetTime
from tuner.payload.reference import Array
from tuner.runtime import timing
from tuner.runtime.cpu.cold_caches import eviction_of
from tuner.runtime.cpu.memory import placed_copy
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.arrays import KernelArrays

TESTED = (0, 16, 32, 48)  # bytes past a cache line
KERNELS = 4  # of the fastest ones
NEAR = 1.05  # times the fastest: one of these is selected
BYTES_LIMIT = 1 << 30  # of all copies of the operands
SHARE = 1 / 6  # of a kernel's time budget, for each offset
MIN_SAMPLES = 9
MAX_SAMPLES = 30
TASKS = "/proc/self/task"  # proc(5): a folder of each thread; a link to each, and two others
LIBC = ctypes.CDLL(None)
DEFAULT = ctypes.c_void_p(-1)  # FE_DFL_ENV of <fenv.h>
HAS_CONTROL_WORDS = platform.machine() == "x86_64"
# fenv_t of glibc on x86-64: 28 bytes of fnstenv, which begin with the control word, then MXCSR
FENV_BYTES = 32
X87_BYTES = 2
MXCSR_AT = 28
MXCSR_FLAGS = 0x3F
FEGETENV = LIBC.fegetenv
ENVIRONMENT = ctypes.create_string_buffer(FENV_BYTES)
ENVIRONMENT_ADDRESS = ctypes.addressof(ENVIRONMENT)
# names, so that the products are not computed when the file is compiled
ONE = 1.0
LEAST = 2.0**-1074
# of the step from 1.0 to the next number
A_QUARTER = 2.0**-54
THREE_QUARTERS = 3 * 2.0**-54
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
    operands: tuple[int, ...]  # addresses; () for a fusion
    keeps: object  # lives as long as the addresses are called
    weights: tuple[
        npt.NDArray[Any], ...
    ] = ()  # packed; evicted with the operands where caches are to be cold


def fastest(times: Mapping[int, Measurement]) -> tuple[int, ...]:
    """Returns the keys of the fastest measurements: at most KERNELS, within NEAR times the fastest median."""
    least_s = min(time.median_s for time in times.values())
    near = [index for index, time in times.items() if time.median_s <= NEAR * least_s]
    return tuple(sorted(near, key=lambda index: times[index].median_s)[:KERNELS])


def offsets_of(problem: Problem) -> tuple[int, ...]:
    """Returns the offsets in bytes past a cache line at which a problem's kernels are timed."""
    return tuple(sorted({*TESTED, problem.offset_bytes}))


def fits(problem: Problem) -> bool:
    """Returns whether kernels of a problem are timed at several offsets.

    The copies of its operands must fit BYTES_LIMIT; fusions are never, nor kernels that read C, which holds
    the sum of all calls in the end.
    """
    if problem.after_product.reads_output:
        return False
    return isinstance(problem, MatmulProblem) and problem.bytes * len(offsets_of(problem)) <= BYTES_LIMIT


class PlacedOperands:
    """Copies of a problem's operands (A, B, arguments of the epilogue, C) at each tested offset."""

    def __init__(self, problem: Problem, operands: tuple[Array, ...]) -> None:
        """Copies the operands. They must hold finite numbers: C is compared between the offsets."""
        self._problem = problem
        self.offsets = offsets_of(problem)
        self.operands = [
            tuple(placed_copy(operand, offset) for operand in operands) for offset in self.offsets
        ]

    def times(
        self, team: ThreadTeam, calls: tuple[PartitionCalls, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[OffsetTime, ...]:
        """Times a kernel at each offset, interleaved; ``calls``: of the kernel, one entry per offset.

        Raises CandidateError(VERIFY) if C differs between offsets.
        """

        def stopwatch(kernel: PartitionCalls, operands: tuple[Array, ...]) -> timing.Stopwatch:
            evict = eviction_of(self._problem, operands)
            if evict is not None:
                return timing.stopwatch_of_cold_calls(evict, lambda: team.once(kernel.calls))
            repeat = timing.stopwatch_of(lambda times: team.repeat(kernel.calls, times))
            return timing.with_untimed_calls(repeat)

        share = Effort(SHARE * effort.budget_s, MIN_SAMPLES, MAX_SAMPLES)
        measured = timing.measure_together_by(tuple(map(stopwatch, calls, self.operands)), share, rng)
        first, *others = (arrays[-1].view(np.uint8) for arrays in self.operands)
        for offset, other in zip(self.offsets[1:], others, strict=True):
            if not np.array_equal(first, other):
                line = f"computes another C where the operands lie {offset} bytes past a cache line"
                raise CandidateError(Stage.VERIFY, line)
        pairs = zip(self.offsets, measured, strict=True)
        return tuple(OffsetTime(offset, time.median_s, time.interval_s) for offset, time in pairs)


FEGETENV.argtypes = (ctypes.c_void_p,)


# Threads and modes are read before and after each call of a kernel, some of which take microseconds: all that
# this needs is looked up once, and the folder of threads is not listed.


@contextlib.contextmanager
def no_thread_started() -> Iterator[None]:
    """Context manager: raises CandidateError(RUN) at its end if threads that started within it still run."""
    before = _threads()
    yield
    started = _threads() - before
    if started > 0:
        raise CandidateError(Stage.RUN, f"started {started} threads that go on after it returned")


@contextlib.contextmanager
def same_float_mode() -> Iterator[None]:
    """Context manager: raises CandidateError(RUN) at its end if the float mode has changed; sets the default.

    The mode: rounding direction, exceptions, and whether subnormal numbers count as zero.
    """
    before = _mode()
    yield
    if _mode() != before:
        LIBC.fesetenv(DEFAULT)
        raise CandidateError(
            Stage.RUN, "changed how its thread rounds, or whether it has subnormal numbers, after it returned"
        )


def _threads() -> int:
    return os.stat(TASKS).st_nlink  # noqa: PTH116 - around each call of a kernel: pathlib takes 20 us more


def _mode() -> tuple[object, ...]:
    """Returns the x87 control word and MXCSR, or what sums and products show of how the thread rounds."""
    if not HAS_CONTROL_WORDS:
        return ONE + THREE_QUARTERS > ONE, ONE + A_QUARTER > ONE, LEAST * ONE > 0.0
    FEGETENV(ENVIRONMENT_ADDRESS)
    words = ENVIRONMENT.raw
    # any arithmetic sets flags of MXCSR
    return words[:X87_BYTES], words[MXCSR_AT] & ~MXCSR_FLAGS, words[MXCSR_AT + 1 :]


@final
class TimingChecks:
    """A stopwatch of one kernel that changes inputs and C at random and verifies C after each sample.

    Later samples are verified on some rows only, if comparing all of C takes too long. For a kernel that
    reads C, C is restored before each call. No input of such a kernel or of a fusion changes in a sample.
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
        self._evict = eviction_of(arrays.problem, (*arrays.operands, *prepared.weights))
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
        """Returns how many untimed calls bring the operands where a caller's next call finds them."""
        reads_much = self._arrays.problem.bytes > READS_MUCH * self._call_s
        return LEAD_CALLS if reads_much else 1

    def _timed_restoring(self, times: int) -> int:
        """Runs and times the calls of a sample one by one, of equal operands; returns 0."""
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
        """Runs and times the calls of a sample; returns how many left C unwritten."""
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
