"""Ctrl-C and SIGTERM end a run without loss; a second signal ends the process at once."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from tuner.tuning.interruption import Interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2  # file descriptor on which progress is shown
SHOW_CURSOR = b"\r\x1b[?25h"  # the live progress line hides the cursor, and a killed process leaves it hidden


@contextlib.contextmanager
def ended_by_signals(interruption: Interruption) -> Iterator[None]:
    """Context manager: the first SIGINT or SIGTERM interrupts the run, the second kills the process.

    Sets ``interruption``, which the run reads. Restores the former signal handlers at its end. Without effect
    outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():  # only there Python sets handlers
        yield
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if interruption.is_asked:
            _show_cursor()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        interruption.ask()

    before = [signal.signal(number, handle) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


def _show_cursor() -> None:
    """Shows the terminal's cursor; writes to the descriptor, since a thread may hold the lock of stderr."""
    if os.isatty(STDERR):
        with contextlib.suppress(OSError):
            os.write(STDERR, SHOW_CURSOR)
