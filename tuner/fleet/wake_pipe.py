"""A pipe that wakes a thread which polls the pipes of its child processes."""

import contextlib
import os
import select
from typing import Final, final

LARGEST_BYTES: Final = 1 << 16  # that a pipe holds


@final
class WakePipe:
    """A pipe by which any thread can wake the one thread that polls the pipes of child processes."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        """Wakes the polling thread; may be called from any thread."""
        with contextlib.suppress(BlockingIOError):  # the pipe is full: the thread will wake
            os.write(self._writing, b"!")

    def clear(self) -> None:
        """Discards earlier wake-ups.

        To be called before the thread looks for what is new, so that no wake-up is lost.
        """
        with contextlib.suppress(BlockingIOError):
            os.read(self._reading, LARGEST_BYTES)

    def register(self, poll: select.poll) -> None:
        """Adds the reading end of the pipe to a poll object."""
        poll.register(self._reading, select.POLLIN)

    def close(self) -> None:
        """Closes both ends of the pipe."""
        os.close(self._reading)
        os.close(self._writing)
