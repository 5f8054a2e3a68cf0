"""A request to end a run, which interrupts waiting but never writes to the database."""

import contextlib
from collections.abc import Iterator


class Interruption:
    """A request to end a run, raised as KeyboardInterrupt only while the run waits for a candidate.

    A run that is writing to the database finishes the write first, then checks ``is_asked``.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_waiting = False

    @property
    def is_asked(self) -> bool:
        """Returns True once ``ask`` has requested that the run end."""
        return self._is_asked

    def ask(self) -> None:
        """Requests that the run end, from a signal handler. Raises KeyboardInterrupt if the run waits."""
        self._is_asked = True
        if self._is_waiting:
            self._is_waiting = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Context manager for code that may be interrupted: ``ask`` raises KeyboardInterrupt within its body.

        Raises KeyboardInterrupt at once if the end of the run is requested already.
        """
        self._is_waiting = True
        try:
            if self._is_asked:  # checked after marking: a signal in between raises by itself
                raise KeyboardInterrupt
            yield
        finally:
            self._is_waiting = False
