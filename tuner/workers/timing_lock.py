"""A lock for one timing at a time on a machine, or on a GPU, across several tuner processes."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

from tuner.core.problem import Problem
from tuner.workers.file_lock import file_lock

FOLDER = "/tmp"  # noqa: S108 - the same folder for all users of a machine, whatever their TMPDIR
FOLDER_VARIABLE = "TUNER_LOCK_FOLDER"  # of the environment: another folder, for tests that share no lock
LOOK_AGAIN_S = 0.02
LINE_LIMIT = 200  # bytes of the text that describes the holder


def holder_text(problem: Problem) -> str:
    """Returns text with this process's id and its problem, for tuners that wait for the timing lock."""
    return f"process {os.getpid()}, {problem.key}"


def lock_path(device: str, folder: Path | None = None) -> Path:
    """Returns the path of a device's lock file.

    It lies in ``folder``; None: the folder that the environment variable ``TUNER_LOCK_FOLDER`` names, else
    the machine's.
    """
    place = folder or Path(os.environ.get(FOLDER_VARIABLE) or FOLDER)
    return place / f"tuner-timing-{device.replace(':', '-').replace('/', '-')}.lock"


@final
class TimingLock:
    """A file lock that lets one process at a time measure on a device; the file names the holder.

    The lock ends with the process that holds it.
    """

    def __init__(
        self,
        device: str,  # "cpu", or the bus address of a GPU
        who: str,  # shown to waiting tuners: "process 4711, matmul 512x512x512 f32 nn none"
        tell: Callable[[str], None] = lambda _who: None,  # called with the holder that is waited for
        folder: Path | None = None,  # None: the machine's, see lock_path
        limit_s: float
        | None = None,  # of waiting, after which the body runs without the lock; None: no limit
    ) -> None:
        self._path = lock_path(device, folder)
        self._who = who
        self._tell = tell
        self._limit_s = limit_s
        self._reported_holder = ""  # the holder last reported

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Context manager: waits for the lock and holds it while its body runs.

        Where the lock's file cannot be opened, and after the limit of waiting, the body runs without a lock.
        """
        descriptor = self._opened()
        if descriptor is None:
            yield
            return
        with file_lock(descriptor):
            if self._is_locked(descriptor):
                with contextlib.suppress(OSError):  # another user's file
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, self._who.encode()[:LINE_LIMIT], 0)
            yield

    def _opened(self) -> int | None:
        for flags in (os.O_RDWR | os.O_CREAT, os.O_RDWR, os.O_RDONLY):  # O_CREAT: not for others' files
            with contextlib.suppress(OSError):
                return os.open(self._path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        return None

    def _is_locked(self, descriptor: int) -> bool:
        """Waits for the lock; returns whether it is held, which it is not after the limit of waiting."""
        started_s = time.monotonic()
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                pass
            if self._limit_s is not None and time.monotonic() - started_s >= self._limit_s:
                return False
            self._report(os.pread(descriptor, LINE_LIMIT, 0).decode(errors="replace"))
            time.sleep(LOOK_AGAIN_S)

    def _report(self, holder: str) -> None:
        """Reports a holder unless it was reported last: two tuners wait for each other all the time."""
        if holder and holder != self._reported_holder:
            self._reported_holder = holder
            self._tell("".join(c if c.isprintable() else "?" for c in holder))
