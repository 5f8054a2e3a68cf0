"""Times of a kernel at several alignments of its operands: whether it is as fast for other arrays."""

from collections.abc import Mapping

import numpy as np

from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.core.record import Measurement, OffsetTime
from tuner.core.target import Effort
from tuner.payload.reference import Array
from tuner.runtime import timing
from tuner.runtime.cpu.eviction import eviction_of
from tuner.runtime.cpu.guarded_arrays import placed_copy
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.partition_calls import PartitionCalls

TESTED = (0, 16, 32, 48)  # bytes past a cache line
KERNELS = 4  # of the fastest ones
NEAR = 1.05  # times the fastest: one of these is selected
BYTES_LIMIT = 1 << 30  # of all copies of the operands
SHARE = 1 / 6  # of the effort for a kernel, per offset
MIN_SAMPLES, MAX_SAMPLES = 9, 30


def fastest(times: Mapping[int, Measurement]) -> tuple[int, ...]:
    """Returns the keys of the measurements that are within NEAR of the fastest one, at most KERNELS."""
    least_s = min(each.median_s for each in times.values())
    near = [index for index, each in times.items() if each.median_s <= NEAR * least_s]
    return tuple(sorted(near, key=lambda index: times[index].median_s)[:KERNELS])


def offsets_of(problem: Problem) -> tuple[int, ...]:
    """Returns the offsets in bytes at which kernels of a problem are timed; that of its alignment is one."""
    return tuple(sorted({*TESTED, problem.offset_bytes}))


def fits(problem: Problem) -> bool:
    """Returns whether a problem's operands are copied to each offset: copies need at most BYTES_LIMIT.

    Those of a group of operations are not: in a program they lie where its plan of the memory says.
    """
    return not problem.group and problem.bytes * len(offsets_of(problem)) <= BYTES_LIMIT


class PlacedOperands:
    """Copies of a problem's operands A, B[, bias], C at each tested offset."""

    def __init__(self, problem: Problem, operands: tuple[Array, ...]) -> None:
        """Copies the operands, which must hold finite numbers: C is compared between the offsets."""
        self._problem = problem
        self.offsets = offsets_of(problem)
        self.operands = [tuple(placed_copy(each, offset) for each in operands) for offset in self.offsets]

    def times(
        self,
        team: ThreadTeam,
        calls: tuple[PartitionCalls, ...],
        effort: Effort,
        rng: np.random.Generator,
    ) -> tuple[OffsetTime, ...]:
        """Times calls of one kernel, one for each offset, interleaved, a sixth of ``effort`` for each.

        ``calls`` run the kernel on ``operands``, in their order. Raises CandidateError(VERIFY) where C
        depends on the offset.
        """

        def stopwatch(one: PartitionCalls, operands: tuple[Array, ...]) -> timing.Stopwatch:
            evict = eviction_of(self._problem, operands)
            if evict is not None:
                return timing.after_each(evict, lambda: team.once(one.calls))
            return timing.with_untimed_calls(timing.stopwatch_of(lambda times: team.repeat(one.calls, times)))

        each = Effort(SHARE * effort.budget_s, MIN_SAMPLES, MAX_SAMPLES)
        found = timing.measure_together_by(tuple(map(stopwatch, calls, self.operands)), each, rng)
        first, *others = (arrays[-1].view(np.uint8) for arrays in self.operands)
        for offset, other in zip(self.offsets[1:], others, strict=True):
            if not np.array_equal(first, other):
                line = f"computes another C where the operands lie {offset} bytes past a cache line"
                raise CandidateError(Stage.VERIFY, line)
        pairs = zip(self.offsets, found, strict=True)
        return tuple(OffsetTime(offset, time.median_s, time.interval_s) for offset, time in pairs)
