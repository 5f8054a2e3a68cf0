"""What ends the sleep of a thread that waits for its children: a pipe among theirs."""

import contextlib
import os
import select
from typing import Final, final

LARGEST_BYTES: Final = 1 << 16  # that a pipe holds


@final
class WakePipe:
    """A pipe that ends the sleep of the thread that owns the children."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        """Ends the sleep; called from any thread."""
        with contextlib.suppress(BlockingIOError):  # it is full: the sleeper will wake
            os.write(self._writing, b"!")

    def clear(self) -> None:
        """Forgets earlier rings; called before what they tell of is looked at, so that none is lost."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reading, LARGEST_BYTES)

    def register(self, poll: select.poll) -> None:
        """Adds the pipe to what is waited for."""
        poll.register(self._reading, select.POLLIN)

    def close(self) -> None:
        """Closes the pipe."""
        os.close(self._reading)
        os.close(self._writing)
