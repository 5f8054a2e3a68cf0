"""Times of the fastest kernels with operands at other alignments: some bytes past a cache line."""

from collections.abc import Mapping

import numpy as np

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
from tuner.targets.cpu.timing_checks import PartitionCalls

TESTED = (0, 16, 32, 48)  # bytes past a cache line
KERNELS = 4  # of the fastest ones
NEAR = 1.05  # times the fastest: one of these is selected
BYTES_LIMIT = 1 << 30  # of all copies of the operands
SHARE = 1 / 6  # of a kernel's time budget, for each offset
MIN_SAMPLES = 9
MAX_SAMPLES = 30


def fastest(times: Mapping[int, Measurement]) -> tuple[int, ...]:
    """Returns keys of the fastest measurements: at most KERNELS, none above NEAR times the least median."""
    ranked = sorted(times, key=lambda index: times[index].median_s)[:KERNELS]
    limit_s = NEAR * times[ranked[0]].median_s
    return tuple(index for index in ranked if times[index].median_s <= limit_s)


def offsets_of(problem: Problem) -> tuple[int, ...]:
    """Returns the offsets in bytes past a cache line at which a problem's kernels are timed."""
    return tuple(sorted({*TESTED, problem.offset_bytes}))


def fits(problem: Problem) -> bool:
    """Returns whether kernels of a problem are timed at several offsets.

    False for fusions, for kernels that read C (which holds the sum of all calls in the end), and if the
    copies of the operands exceed BYTES_LIMIT.
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
        self.operands: list[tuple[Array, ...]] = []
        for offset in self.offsets:
            self.operands.append(tuple(placed_copy(operand, offset) for operand in operands))

    def times(
        self, team: ThreadTeam, calls: tuple[PartitionCalls, ...], effort: Effort, rng: np.random.Generator
    ) -> tuple[OffsetTime, ...]:
        """Times a kernel at each offset, interleaved; returns the time at each offset.

        ``calls``: the calls of the kernel at each offset, in the order of ``offsets_of``. Raises
        CandidateError(VERIFY) if C differs between offsets.
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
        found = []
        for offset, time in zip(self.offsets, measured, strict=True):
            found.append(OffsetTime(offset, time.median_s, time.interval_s))
        return tuple(found)
