"""The timing lock: only one tuner of a user at a time measures on each core and on each GPU.

``LockWait`` says how a run waits for the lock, and until when.
"""

import contextlib
import fcntl
import functools
import logging
import os
import re
import stat
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

from tuner.core.problem import Problem
from tuner.runtime.cpu.host import cores_of
from tuner.runtime.workers.processes import owned_lock_file, state_of

LOOK_AGAIN_S = 0.02
TEXT_BYTES = 200  # of the text that describes a holder
# struct flock of fcntl(2): type, whence, start, length, process (0 for locks of an open file)
FLOCK = "hhqqi4x"
log = logging.getLogger(__name__)
FOLDER_VARIABLE = "TUNER_LOCK_FOLDER"  # of the environment: another folder, for tests that share no lock
SHARED_FOLDERS = ("/tmp", "/dev/shm")  # noqa: S108 - only a folder of the user in them is used
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
BUS_SEPARATOR = ":"  # of a GPU's bus address, "0000:01:00.0"; a device without it is the processors


def holder_text(problem: Problem) -> str:
    """Returns a text with this process's id and problem, which tuners that wait for the lock print."""
    return f"process {os.getpid()}, {problem.key}"


def log_waiting(who: str) -> None:
    """Logs a warning (by default on stderr) that this command waits for the tuner ``who``."""
    log.warning("waiting for %s: it times on the same device", who)


def ignore_holder(_who: str) -> None:
    """Does nothing with the holder's text; the default for ``report_end`` of ``LockWait``."""


@final
class LockWait:
    """The wait of a run for the timing lock: how to report it, when to give up, and the seconds waited."""

    def __init__(
        self,
        report: Callable[[str], None] = log_waiting,  # called once with each holder that is waited for
        report_end: Callable[[str], None] = ignore_holder,  # called once with a holder, when waiting is over
        limit_s: float | None = None,  # from now, of all waiting together; None: no limit
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report = report
        self._report_end = report_end
        self._has_ended = False
        self._clock = clock
        self._reported: set[str] = set()
        self.waited_s = 0.0
        self.ends_s: float | None = None  # by the clock: from then on nobody is waited for
        if limit_s is not None:
            self.end_in(limit_s)

    @property
    def is_over(self) -> bool:
        """True if the end of waiting has passed: timing goes on without the lock."""
        return self.ends_s is not None and self._clock() >= self.ends_s

    def end_in(self, seconds: float) -> None:
        """Sets the end of waiting: ``seconds`` from now."""
        self.ends_s = self._clock() + seconds

    def report(self, holder: str) -> None:
        """Reports the process that holds the lock, unless it was reported before or its text is ""."""
        if holder and holder not in self._reported:
            self._reported.add(holder)
            self._report(_with_state(holder))

    def give_up(self, holder: str) -> None:
        """Reports, once, that timing goes on although ``holder`` still holds the lock."""
        if not self._has_ended:
            self._has_ended = True
            self._report_end(holder)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Context manager: adds the seconds that its body takes to ``waited_s``."""
        started_s = self._clock()
        try:
            yield
        finally:
            self.waited_s += self._clock() - started_s


def _with_state(holder: str) -> str:
    process = re.match(r"process (\d+)\b", holder)
    if process is None or state_of(int(process[1])) != "T":
        return holder
    return f"{holder} (it is stopped: kill -CONT {process[1]})"


# Where the lock's file is: in a folder that belongs to the user and that nobody else can write to.
#
# A file that everybody can open can be locked by everybody, for ever. Two tuners of one user must agree on
# the folder whatever their environments say: TMPDIR and HOME do not count as long as there is /tmp.


def lock_folders() -> Iterator[Path]:
    """Yields the folders in which the lock's file may be, in order of preference; makes missing ones.

    If the environment variable TUNER_LOCK_FOLDER is set, only that folder, which is not made.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        yield Path(chosen)
        return
    for shared in SHARED_FOLDERS:
        folder = Path(shared) / f"tuner-{os.geteuid()}"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700)
        yield folder
    import platformdirs  # not at start-up

    folder = platformdirs.user_cache_path("tuner")
    # of one machine only: a home folder may be shared by many
    folder /= f"timing-{os.uname().nodename}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield folder


def opened_lock_file(device: str, folder: Path | None = None) -> int | None:
    """Returns the descriptor of a device's lock file, which only this user can open.

    None if no folder can have the file. Does not follow symbolic links, and skips a folder that another user
    owns or can write to.
    """
    name = f"{device.replace(':', '-').replace('/', '-')}.lock"
    for lock_folder in lock_folders() if folder is None else (folder,):
        with contextlib.suppress(OSError):
            return _opened_in(lock_folder, name)
    return None


def _opened_in(folder: Path, name: str) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & OTHERS_WRITE:
            raise PermissionError(f"{folder}: another user can write to it")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=descriptor)
    finally:
        os.close(descriptor)


@functools.cache
def cores_of_mask(processors: frozenset[int]) -> tuple[int, ...]:
    """Returns the cores of an affinity mask, a set of processors; cached, as /sys is slow."""
    return cores_of(processors)


@final
class TimingLock:
    """A lock per core, or per GPU, for one measuring process at a time; the holder's end frees it.

    On a CPU the cores are those of the calling thread's affinity mask when the lock is taken: tuners that are
    pinned to different cores do not wait for one another.
    """

    def __init__(
        self,
        device: str,  # "cpu", or the bus address of a GPU
        who: str,  # shown to waiting tuners: "process 4711, matmul 512x512x512 f32 nn none"
        wait: LockWait | None = None,  # None: as long as it takes, reported on stderr
        folder: Path | None = None,  # None: the user's, see ``lock_folders``
    ) -> None:
        self._device = device
        self._who = who.encode()[:TEXT_BYTES]
        self._wait = LockWait() if wait is None else wait
        self._folder = folder

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Context manager: holds the lock while its body runs.

        The body runs without the lock if waiting has ended before the lock was free, or if there is no file
        that can be locked.
        """
        descriptor = opened_lock_file(self._device, self._folder)
        if descriptor is None:
            yield
            return
        slots: tuple[int, ...] = (0,)
        if BUS_SEPARATOR not in self._device:
            slots = cores_of_mask(frozenset(os.sched_getaffinity(0)))
        with owned_lock_file(descriptor):
            is_locked = self._has_locked(descriptor, slots)
            try:
                yield
            finally:
                if is_locked:
                    self._write(descriptor, slots, b"")

    def _has_locked(self, descriptor: int, slots: tuple[int, ...]) -> bool:
        for slot in slots:
            try:
                if not (
                    self._takes(descriptor, 2 * slot, slot) and self._takes(descriptor, 2 * slot + 1, slot)
                ):
                    _set_lock(descriptor, fcntl.F_UNLCK, 0, 0)  # all that it has so far
                    return False
                _set_lock(descriptor, fcntl.F_UNLCK, 2 * slot)
            except OSError:  # a file system without such locks
                return False
        self._write(descriptor, slots, self._who)
        return True

    def _takes(self, descriptor: int, byte: int, slot: int) -> bool:
        with contextlib.suppress(BlockingIOError):
            _set_lock(descriptor, fcntl.F_WRLCK, byte)
            return True
        with self._wait.counted():
            while not self._wait.is_over:
                self._wait.report(self._holder(descriptor, slot))
                time.sleep(LOOK_AGAIN_S)
                with contextlib.suppress(BlockingIOError):
                    _set_lock(descriptor, fcntl.F_WRLCK, byte)
                    return True
        self._wait.give_up(self._holder(descriptor, slot))
        return False

    def _holder(self, descriptor: int, slot: int) -> str:
        text = os.pread(descriptor, TEXT_BYTES, slot * TEXT_BYTES).rstrip(b"\0")
        if text == self._who:  # of an earlier timing: the holder has not written its own yet
            return ""
        return "".join(c if c.isprintable() else "?" for c in text.decode(errors="replace"))

    def _write(self, descriptor: int, slots: tuple[int, ...], text: bytes) -> None:
        padded = text.ljust(TEXT_BYTES, b"\0")
        with contextlib.suppress(OSError):  # a full disk: those who wait do not learn for whom
            for slot in slots:
                os.pwrite(descriptor, padded, slot * TEXT_BYTES)


# The lock itself: two bytes of the file for each core, locked as fcntl(2) describes for open files.
#
# Byte 2 n + 1 is held while core n is timed on; byte 2 n by the tuner that gets the core next, so that one
# which times a candidate after the other does not take it again and again before others look. Cores are
# locked in ascending order: tuners that share some cores cannot wait for one another in a circle.


def _set_lock(descriptor: int, type_: int, byte: int, count: int = 1) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(FLOCK, type_, os.SEEK_SET, byte, count, 0))
