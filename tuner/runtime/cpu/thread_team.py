"""A persistent thread team that runs compiled functions in parallel, like an OpenMP runtime.

Fork and join are compiled code, thread_team.mlir: a thread spins on a counter, then sleeps on a semaphore, so
that fork and join take less than a microsecond for a busy team, and an idle team uses no processor. Each
thread is a Python thread inside of one compiled call, which has released the interpreter lock. After
os.fork() the child process has none of the threads: its teams start new threads at their next call.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from tuner.mlir.jit import CompiledFunction, JittedModule, PackedArguments

SLOT_BYTES = 512  # of a thread: each word that threads share is in a separate cache line
FUNCTION_OFFSET, ARGUMENTS_OFFSET = 8, 16  # next to the counter of posts, and written before it
SEMAPHORE_OFFSET = 384
SPIN_LIMIT = 200_000  # pauses, about 2 ms, before a thread sleeps


class ThreadTeam:
    """A team of ``size`` threads that runs compiled functions in parallel, like an OpenMP runtime.

    The threads are the caller's thread and ``size - 1`` threads that wait for work.
    """

    def __init__(self, size: int) -> None:
        """Compiles the team's code and starts the threads, which end with ``close`` or with the process."""
        text = (files("tuner.runtime.cpu") / "thread_team.mlir").read_text()
        self._code = JittedModule(text, ("team_member", "team_repeat", "team_watch"))
        self._repeat = CompiledFunction(self._code.addresses["team_repeat"])
        self._watch = CompiledFunction(self._code.addresses["team_watch"])
        self.size = size
        self.lock = threading.Lock()  # for callers that share the team; a forked process has a new one
        self._processors: tuple[int, ...] = ()  # that the threads are pinned to
        self._start()
        TEAMS.add(self)

    def _start(self) -> None:
        self._slots = _aligned(max(self.size - 1, 1) * SLOT_BYTES)
        self._threads = [
            threading.Thread(target=self._live, args=(index,), daemon=True) for index in range(self.size - 1)
        ]
        self._is_forked = False  # since the threads were started
        libc = ctypes.CDLL(None, use_errno=True)
        for index, thread in enumerate(self._threads):
            libc.sem_init(ctypes.c_void_p(self._slots.address + index * SLOT_BYTES + SEMAPHORE_OFFSET), 0, 0)
            thread.start()
        self._pin_threads()

    def forget_threads(self) -> None:
        """Makes the team start new threads at its next call, with a new lock: for a forked process.

        A fork copies neither the threads nor a usable lock.
        """
        self._is_forked = True
        self._threads = []
        self.lock = threading.Lock()

    def repeat(self, calls: tuple[tuple[int, int], ...], times: int) -> None:
        """Runs compiled functions in parallel, one per thread, and waits for all; ``times`` rounds of this.

        ``calls`` are (function address, argument address); each function takes that pointer and returns
        nothing. The caller's thread runs the first. Raises ValueError for no call or more calls than threads.
        """
        self._repeat(PackedArguments(*self._given(calls), times))

    def watch(self, calls: tuple[tuple[int, int], ...], times: int, marks: npt.NDArray[np.uint64]) -> int:
        """Runs calls like ``repeat`` with other inputs each round; returns how many rounds left C unwritten.

        ``marks`` has shape (count, 2), count a power of two; the pairs are used cyclically, one per round.
        The first address is that of the highest byte of a number of A or B, whose sign is flipped during the
        round. The second is that of the two highest bytes of an element of C, which is set to NaN before the
        round and has to be different after it. Raises ValueError for another shape, and for no call or more
        calls than threads.
        """
        count = len(marks)
        if marks.shape != (count, 2) or count & (count - 1) or not count:
            raise ValueError(f"marks: found shape {marks.shape}, allowed (a power of two, 2)")
        arguments = PackedArguments(*self._given(calls), times, marks.ctypes.data, count)
        self._watch(arguments)
        return arguments.result

    def once(
        self, calls: tuple[tuple[int, int], ...], mark: npt.NDArray[np.uint64] | None = None
    ) -> Callable[[], int]:
        """Returns a function that runs calls once in parallel, and does little else: for timing single calls.

        With ``mark``, of shape (1, 2), the calls run as by ``watch``, and 1 is returned where C was left
        unwritten; else 0. The function must be called before any other call of the team.
        """
        given = self._given(calls)
        if mark is None:
            function, arguments = self._repeat, PackedArguments(*given, 1)
        else:
            function, arguments = self._watch, PackedArguments(*given, 1, mark.ctypes.data, 1)

        def run() -> int:
            function(arguments)
            return arguments.result

        return run

    def _given(self, calls: tuple[tuple[int, int], ...]) -> tuple[int, int, int, int]:
        """Writes the calls into the threads' slots; returns the first arguments of the compiled loops."""
        if not 1 <= len(calls) <= self.size:
            raise ValueError(f"team of {self.size}: found {len(calls)} calls")
        if self._is_forked:
            self._start()
        for index, (function, arguments) in enumerate(calls[1:]):
            self._write(index, function, arguments)
        return (self._slots.address, len(calls) - 1, *calls[0])

    def pin(self, processors: tuple[int, ...]) -> None:
        """Pins the caller's thread to the first of ``processors`` and each other thread to one of the next.

        Processors are numbers as in /proc/cpuinfo; threads beyond their number are not pinned.
        """
        os.sched_setaffinity(0, {processors[0]})
        self._processors = processors
        self._pin_threads()

    def _pin_threads(self) -> None:
        for thread, processor in zip(self._threads, self._processors[1:], strict=False):
            if thread.native_id is not None:
                os.sched_setaffinity(thread.native_id, {processor})

    def close(self) -> None:
        """Ends the team's threads and waits for their end; the caller's thread goes on.

        The team must not be used afterwards.
        """
        if self._threads:
            for index in range(len(self._threads)):
                self._write(index, 0, 0)
            self._repeat(PackedArguments(self._slots.address, len(self._threads), 0, 0, 1))
            for thread in self._threads:
                thread.join()
            self._threads = []

    def _live(self, index: int) -> None:
        slot = self._slots.address + index * SLOT_BYTES
        CompiledFunction(self._code.addresses["team_member"])(PackedArguments(slot, SPIN_LIMIT))

    def _write(self, index: int, function: int, arguments: int) -> None:
        slot = self._slots.address + index * SLOT_BYTES
        ctypes.c_uint64.from_address(slot + FUNCTION_OFFSET).value = function
        ctypes.c_uint64.from_address(slot + ARGUMENTS_OFFSET).value = arguments


class _Memory:
    def __init__(self, size: int) -> None:
        self._bytes = (ctypes.c_uint8 * (size + 64))()
        self.address = -(-ctypes.addressof(self._bytes) // 64) * 64


def _forget_threads() -> None:
    for team in TEAMS:
        team.forget_threads()


TEAMS: "weakref.WeakSet[ThreadTeam]" = weakref.WeakSet()
os.register_at_fork(after_in_child=_forget_threads)


def _aligned(size: int) -> _Memory:
    return _Memory(size)
