"""A persistent thread team that runs compiled functions in parallel, like an OpenMP runtime.

Fork and join are compiled code (thread_team.mlir). A thread spins on a counter, then sleeps on a semaphore:
fork and join take less than a microsecond for a busy team, and an idle team uses no processor.
"""

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments, loop_text
from tuner.runtime.cpu.team_threads import TeamThreads

SPIN_LIMIT = 200_000  # pauses, about 2 ms, before a thread sleeps


class ThreadTeam:
    """The caller's thread and ``size - 1`` others that run compiled functions, as OpenMP does."""

    def __init__(self, size: int) -> None:
        """Compiles the team's code and starts the threads, which end with ``close`` or with the process."""
        self._code = JittedModule(loop_text("thread_team"), ("team_member", "team_repeat", "team_watch"))
        self._repeat = CompiledFunction(self._code.addresses["team_repeat"])
        self._watch = CompiledFunction(self._code.addresses["team_watch"])
        self.size = size
        self.members = TeamThreads(self._wait_for_work, size - 1)
        self.lock = self.members.lock  # held by callers that share the team, around each use
        self.members.require(size - 1)

    def repeat(self, calls: tuple[tuple[int, int], ...], times: int) -> None:
        """Runs compiled functions in parallel, one per thread, ``times`` times in a row; waits for all.

        ``calls``: (function address, argument address) per thread, the caller's first. Raises ValueError for
        no calls, or more than threads.
        """
        self._repeat(PackedArguments(*self._posted(calls), times))

    def watch(self, calls: tuple[tuple[int, int], ...], times: int, marks: npt.NDArray[np.uint64]) -> int:
        """Runs calls ``times`` times, with changed inputs in each round.

        Returns how many rounds left an element of C unwritten. ``marks``, (count, 2), count a power of two:
        addresses of the highest byte of a number of A or B, whose sign is flipped, and of the two highest
        bytes of an element of C, which must not stay NaN. Raises ValueError for another shape.
        """
        count = len(marks)
        if marks.shape != (count, 2) or count & (count - 1) or not count:
            raise ValueError(f"marks: found shape {marks.shape}, allowed (a power of two, 2)")
        arguments = PackedArguments(*self._posted(calls), times, marks.ctypes.data, count)
        self._watch(arguments)
        return arguments.result

    def once(
        self, calls: tuple[tuple[int, int], ...], mark: npt.NDArray[np.uint64] | None = None
    ) -> Callable[[], int]:
        """Returns a function that runs all calls once, one per thread; call it before the team is used again.

        ``mark``: shape (1, 2), the addresses of a number of A or B to change and of an element of C. The
        function then returns 1 if that element was not written, else 0.
        """
        first = self._posted(calls)
        if mark is None:
            function = self._repeat
            arguments = PackedArguments(*first, 1)
        else:
            function = self._watch
            arguments = PackedArguments(*first, 1, mark.ctypes.data, 1)

        def run() -> int:
            function(arguments)
            return arguments.result

        return run

    def _posted(self, calls: tuple[tuple[int, int], ...]) -> tuple[int, int, int, int]:
        """Writes the calls into the threads' slots; returns the first arguments of the compiled loops."""
        if not 1 <= len(calls) <= self.size:
            raise ValueError(f"team of {self.size}: found {len(calls)} calls")
        if len(self.members.threads) < self.size - 1:  # in a forked process
            self.members.require(self.size - 1)
        self.members.keep_off_caller()
        self.members.post(calls[1:])
        return (self.members.slots_address, len(calls) - 1, *calls[0])

    def pin(self, processors: tuple[int, ...]) -> None:
        """Pins the caller's thread to the first of ``processors``, the other threads to the next ones."""
        os.sched_setaffinity(0, {processors[0]})
        self.members.pin(processors[1:])

    def close(self) -> None:
        """Ends the team's threads and waits for them; the team must not be used afterwards."""
        count = len(self.members.threads)
        if count:
            self.members.post([(0, 0)] * count)  # a call at address 0 ends its thread
            self._repeat(PackedArguments(self.members.slots_address, count, 0, 0, 1))
            self.members.join()

    def _wait_for_work(self, slot: int) -> None:
        CompiledFunction(self._code.addresses["team_member"])(PackedArguments(slot, SPIN_LIMIT))
