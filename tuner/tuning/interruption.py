"""A request to end a run, which interrupts waiting but never storing."""

import contextlib
from collections.abc import Iterator


class Interruption:
    """Asked for at any moment, raised as KeyboardInterrupt only while the run waits for a candidate.

    A run that is storing finishes that first, then sees ``is_asked``.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._is_waiting = False

    @property
    def is_asked(self) -> bool:
        """Says whether the run was asked to end."""
        return self._is_asked

    def ask(self) -> None:
        """Asks the run to end; called from a signal handler. Raises KeyboardInterrupt if it waits."""
        self._is_asked = True
        if self._is_waiting:
            self._is_waiting = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Marks a stretch that may be cut off. Raises KeyboardInterrupt at once when already asked."""
        self._is_waiting = True
        try:
            if self._is_asked:  # looked at after marking: a signal in between raises by itself
                raise KeyboardInterrupt
            yield
        finally:
            self._is_waiting = False
