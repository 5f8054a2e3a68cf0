"""A call of a program's machine code on several threads, in place of a call of its function."""

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from tuner.programs.run.grouped_code import (
    ARRIVALS_OFFSET,
    CALL_BYTES,
    MEMBER_ENTRY,
    PART_ENTRY,
    PART_WORDS,
    REPEAT_ENTRY,
)
from tuner.programs.run.result_pool import aligned_bytes
from tuner.runtime.cpu.program_team import PROCESS_TEAM

if TYPE_CHECKING:
    from tuner.runtime.cpu.loaded_object import LoadedObject


class TeamCall:
    """A program on ``threads`` threads: the caller's, and others of the process's team.

    Calls of several programs run one after the other.
    """

    def __init__(self, loaded: "LoadedObject", threads: int) -> None:
        """Takes loaded code that has a part for each thread; starts the threads.

        Threads inherit the processors of the thread that starts them, and a timing pins the caller later.
        """
        self._team = PROCESS_TEAM.team(loaded, loaded.addresses, MEMBER_ENTRY, REPEAT_ENTRY)
        self._part = loaded.addresses[PART_ENTRY]
        self._call = aligned_bytes(CALL_BYTES)
        self._call[...] = 0
        address = self._call.ctypes.data
        self._frame = ctypes.c_uint64.from_address(address)
        # the number of threads that sleep is next to it, and 0 between calls
        self._arrivals = ctypes.c_uint64.from_address(address + ARRIVALS_OFFSET)
        self._parts = aligned_bytes(threads * PART_WORDS * 8).view(np.uint64).reshape(threads, PART_WORDS)
        self._parts[:, 0] = address
        self._parts[:, 1] = range(threads)
        self._parts[:, 2] = threads
        self._arguments = tuple(int(part.ctypes.data) for part in self._parts)
        with self._team.lock:
            self._team.require(threads)

    def __call__(self, frame: int) -> None:
        """Runs the program on the frame at an address, and waits for all threads."""
        with self._team.lock:
            self._frame.value = frame
            self._arrivals.value = 0
            self._team.run(self._part, self._arguments)
