"""Runs programs on the threads of one team that all programs of the process share, without a compiler.

The team's fork and join are in the object file of each program for several threads; the first program that is
run lends its code to all others. So the threads of one program never wait in a loop while another one works.
"""

import ctypes
import threading
from collections.abc import Mapping
from typing import Any

from tuner.core.errors import UsageError
from tuner.runtime.cpu.team_threads import TeamThreads
from tuner.runtime.process_locks import thread_lock

THREADS_LIMIT = 256  # of a program
SPIN_LIMIT = 20_000  # pauses, some 0.2 to 1 ms, before a thread without work sleeps


def checked_threads(threads: object, most: int = THREADS_LIMIT) -> int:
    """Returns a number of threads of a program. Raises UsageError for what is none of 1 to ``most``."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= most:
        raise UsageError(f"threads: found {threads!r}, allowed {'1' if most == 1 else f'1 to {most}'}")
    return threads


class ProgramTeam:
    """Threads that run a function together with the caller's thread, each with an argument of its own."""

    def __init__(self, loaded: Any, member: int, repeat: int) -> None:
        """Takes the addresses of the team's functions in loaded machine code, which the team keeps alive."""
        self._loaded = loaded
        self._member: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(member)
        self._repeat: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * 5)(repeat)
        self.members = TeamThreads(self._live, THREADS_LIMIT - 1)
        self._posted: tuple[int, ...] = ()  # what is in the slots

    @property
    def lock(self) -> threading.Lock:
        """Returns the lock that a caller holds during ``run``; it is free in a forked process."""
        return self.members.lock

    def require(self, threads: int) -> None:
        """Starts threads until there are so many, the caller's included; the caller holds the lock."""
        if len(self.members.threads) < threads - 1:
            self.members.require(threads - 1)
            self._posted = ()  # the slots of a forked process are new

    def run(self, function: int, arguments: tuple[int, ...]) -> None:
        """Calls a function with each of the arguments, the first one on this thread, and waits for all."""
        members = self.members
        self.require(len(arguments))
        members.keep_off_caller()
        if self._posted is not arguments:
            for index, argument in enumerate(arguments[1:]):
                members.write(index, function, argument)
            self._posted = arguments
        self._repeat(members.slots, len(arguments) - 1, function, arguments[0], 1)

    def _live(self, slot: int) -> None:
        self._member(slot, SPIN_LIMIT)


class TeamHolder:
    """The team of this process, made when it is needed first."""

    def __init__(self) -> None:
        self._lock = thread_lock()
        self._team: ProgramTeam | None = None

    def team(self, loaded: Any, functions: Mapping[str, int], member: str, repeat: str) -> ProgramTeam:
        """Returns the team; ``functions`` has the addresses of its code, by name, in loaded machine code."""
        with self._lock:
            if self._team is None:
                self._team = ProgramTeam(loaded, functions[member], functions[repeat])
            return self._team


# process-wide on purpose: threads of two teams would wait in loops on each other's processors
PROCESS_TEAM = TeamHolder()
