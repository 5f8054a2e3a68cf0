"""One timing at a time on a machine, or on a GPU: tuners beside each other wait for their turn."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

from tuner.core.problem import Problem

FOLDER = Path("/tmp")  # noqa: S108 - one place for all users of a machine, whatever their TMPDIR
LOOK_AGAIN_S = 0.02
LINE_LIMIT = 200  # bytes of who holds it


def words_of(problem: Problem) -> str:
    """Returns what a tuner that times a problem tells others of itself."""
    return f"process {os.getpid()}, {problem.key}"


@final
class TimingLock:
    """A lock that ends with its process. Who holds it is written into its file."""

    def __init__(
        self,
        device: str,  # "cpu", or the bus address of a GPU
        who: str,  # for others to read: "process 4711, matmul 512x512x512 f32 nn none"
        tell: Callable[[str], None] = lambda _who: None,  # of whom is waited for
        folder: Path = FOLDER,
    ) -> None:
        self._path = folder / f"tuner-timing-{device.replace(':', '-').replace('/', '-')}.lock"
        self._who = who
        self._tell = tell
        self._told = ""  # of whom last

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Waits for its turn and keeps it. A folder that takes no file locks nothing."""
        descriptor = self._opened()
        if descriptor is None:
            yield
            return
        try:
            self._wait(descriptor)
            with contextlib.suppress(OSError):  # another user's file
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, self._who.encode()[:LINE_LIMIT], 0)
            yield
        finally:
            os.close(descriptor)  # which gives it back

    def _opened(self) -> int | None:
        for flags in (os.O_RDWR | os.O_CREAT, os.O_RDWR, os.O_RDONLY):  # O_CREAT: not of others' in /tmp
            with contextlib.suppress(OSError):
                return os.open(self._path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        return None

    def _wait(self, descriptor: int) -> None:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                pass
            self._report(os.pread(descriptor, LINE_LIMIT, 0).decode(errors="replace"))
            time.sleep(LOOK_AGAIN_S)

    def _report(self, holder: str) -> None:
        """Tells of a holder unless it was the last one told: two tuners wait for each other all the time."""
        if holder and holder != self._told:
            self._told = holder
            self._tell("".join(c if c.isprintable() else "?" for c in holder))
