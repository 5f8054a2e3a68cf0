"""Ctrl-C and SIGTERM end a run without loss; the second one ends the process at once."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from tuner.tuning.interruption import Interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2  # descriptor that progress is shown on
SHOW_CURSOR = b"\r\x1b[?25h"  # which a moving line hides: nobody else restores it when the process is killed


@contextlib.contextmanager
def ended_by_signals(interruption: Interruption) -> Iterator[None]:
    """Passes the first signal on to the run and lets the second one kill; restores what was before."""
    if threading.current_thread() is not threading.main_thread():  # only there Python takes handlers
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
    """Shows the terminal's cursor, by the descriptor alone: a thread may be printing and hold its lock."""
    if os.isatty(STDERR):
        with contextlib.suppress(OSError):
            os.write(STDERR, SHOW_CURSOR)
