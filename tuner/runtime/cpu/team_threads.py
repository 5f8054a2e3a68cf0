"""The threads of a team, and the one team that all compiled programs of a process share.

Each thread is a Python thread inside of one call of compiled code, ``thread_team.mlir``. It has released the
interpreter lock and waits for work, which is written into the thread's slot of memory. ``TeamThreads`` needs
no compiler; ``ProgramTeam`` takes the compiled code from the first program.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from tuner.core.errors import UsageError
from tuner.runtime.cpu.alternate_stacks import watch_thread
from tuner.runtime.process_state import thread_lock

SLOT_BYTES = 512  # of a thread: each word that threads share is in a separate cache line
LINE_BYTES = 64
# next to the counter of posts, and written before it
FUNCTION_OFFSET = 8
ARGUMENTS_OFFSET = 16
SEMAPHORE_OFFSET = 384
CURRENT_PROCESSOR: Any = ctypes.PyDLL(None).sched_getcpu  # takes 60 ns; keeps the interpreter lock
STACK_BYTES = 8 << 20  # as of the main thread by default; fusions have buffers on the stack
TEAMS: "weakref.WeakSet[TeamThreads]" = weakref.WeakSet()  # of this process, for forks
THREADS_LIMIT = 256  # of a program
SPIN_LIMIT = 20_000  # pauses, some 0.2 to 1 ms, before a thread without work sleeps
_lock = thread_lock()


class TeamThreads:
    """Threads that run compiled functions; started at the first use, and again after a fork."""

    def __init__(self, member: Callable[[int], None], capacity: int) -> None:
        """Reserves slots for ``capacity`` threads, and starts none.

        ``member``: what each thread calls with the address of its slot; it runs the functions that are posted
        there, until one of address 0.
        """
        self._member = member
        self._capacity = capacity
        self._processors: tuple[int, ...] = ()  # that the threads are pinned to
        self._allowed: frozenset[int] = frozenset()  # processors of the threads that are not pinned
        self._kept_off: int | None = None  # the processor that unpinned threads keep off
        self.lock = thread_lock()  # for callers that share the threads
        self.forget()
        TEAMS.add(self)

    def forget(self) -> None:
        """Drops the threads and creates new slots.

        For a forked process, in which the threads do not exist.
        """
        self.threads: list[threading.Thread] = []
        self._slots = (ctypes.c_uint8 * (max(self._capacity, 1) * SLOT_BYTES + LINE_BYTES))()
        self.slots_address = -(-ctypes.addressof(self._slots) // LINE_BYTES) * LINE_BYTES

    def require(self, count: int) -> None:
        """Starts threads until there are ``count``. Raises ValueError if there are fewer slots."""
        if count > self._capacity:
            raise ValueError(f"found {count} threads, allowed {self._capacity}")
        libc = ctypes.CDLL(None, use_errno=True)
        if not self.threads:
            self._allowed = frozenset(os.sched_getaffinity(0))
        before = threading.stack_size(STACK_BYTES)
        try:
            for index in range(len(self.threads), count):
                slot = self.slots_address + index * SLOT_BYTES
                libc.sem_init(ctypes.c_void_p(slot + SEMAPHORE_OFFSET), 0, 0)
                self.threads.append(threading.Thread(target=self._run, args=(slot,), daemon=True))
                self.threads[-1].start()
        finally:
            threading.stack_size(before)
        self._kept_off = None
        self._pin()

    def _run(self, slot: int) -> None:
        watch_thread()
        self._member(slot)

    def post(self, calls: Iterable[tuple[int, int]]) -> None:
        """Writes (function address, argument address) pairs into the threads' slots, one per slot, in order.

        The work begins when compiled code (``thread_team.mlir``) signals the threads.
        """
        for index, (function, arguments) in enumerate(calls):
            slot = self.slots_address + index * SLOT_BYTES
            ctypes.c_uint64.from_address(slot + FUNCTION_OFFSET).value = function
            ctypes.c_uint64.from_address(slot + ARGUMENTS_OFFSET).value = arguments

    def pin(self, processors: tuple[int, ...]) -> None:
        """Pins each thread, also those that start later, to the processor of its index in ``processors``."""
        self._processors = processors
        self._pin()

    def keep_off_caller(self) -> None:
        """Keeps unpinned threads off the caller's processor, where Linux may wake one of them."""
        processor = CURRENT_PROCESSOR()
        if processor != self._kept_off and not self._processors:
            self._kept_off = processor
            allowed = self._allowed - {processor} or self._allowed
            for thread in self.threads:
                if thread.native_id is not None:
                    with suppress(OSError):  # a container's processors were changed: threads stay
                        os.sched_setaffinity(thread.native_id, allowed)

    def join(self) -> None:
        """Waits until the threads have ended; each must have been given a function of address 0."""
        for thread in self.threads:
            thread.join()
        self.threads = []

    def _pin(self) -> None:
        for thread, processor in zip(self.threads, self._processors, strict=False):  # some may not exist yet
            if thread.native_id is not None:
                os.sched_setaffinity(thread.native_id, {processor})


def _forget_threads() -> None:
    for team in TEAMS:
        team.forget()


os.register_at_fork(after_in_child=_forget_threads)


def checked_threads(threads: object, most: int = THREADS_LIMIT) -> int:
    """Returns ``threads``, a program's number of threads.

    Raises UsageError unless an int from 1 to ``most``.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= most:
        raise UsageError(f"threads: found {threads!r}, allowed {'1' if most == 1 else f'1 to {most}'}")
    return threads


class ProgramTeam:
    """Threads that run one function together with the caller's thread, each with its own argument."""

    def __init__(self, loaded: Any, member: str, repeat: str) -> None:
        """Takes the team's two compiled functions, by name, from the machine code of a program."""
        self._loaded = loaded  # keeps the code in memory, which the threads run also after its program ends
        self._member: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.addresses[member])
        self._repeat: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 5)(loaded.addresses[repeat])
        self.members = TeamThreads(self._wait_for_work, THREADS_LIMIT - 1)
        self.lock = self.members.lock
        self._posted: tuple[int, ...] = ()  # what is in the slots

    def require(self, threads: int) -> None:
        """Starts threads until there are ``threads``, including the caller's.

        The caller must hold the team's lock.
        """
        if len(self.members.threads) < threads - 1:
            self.members.require(threads - 1)
            self._posted = ()  # the slots of a forked process are new

    def run(self, function: int, arguments: tuple[int, ...]) -> None:
        """Calls a function once per argument, the first call on this thread, and waits for all.

        ``function``: address of compiled code; ``arguments``: addresses. Starts missing threads.
        """
        members = self.members
        self.require(len(arguments))
        members.keep_off_caller()
        if self._posted is not arguments:  # identity: a program passes one tuple, with one function
            members.post((function, argument) for argument in arguments[1:])
            self._posted = arguments
        self._repeat(members.slots_address, len(arguments) - 1, function, arguments[0], 1)

    def _wait_for_work(self, slot: int) -> None:
        self._member(slot, SPIN_LIMIT)


# process-wide on purpose: threads of two teams would wait in loops on each other's processors
_process_team: list[ProgramTeam] = []  # at most one


def process_team(loaded: Any, member: str, repeat: str) -> ProgramTeam:
    """Returns the team of this process. The first call makes it, with the compiled code of that program.

    ``loaded``: the program's code; ``member``, ``repeat``: names of its functions for threads and caller.
    """
    with _lock:
        if not _process_team:
            _process_team.append(ProgramTeam(loaded, member, repeat))
        return _process_team[0]
