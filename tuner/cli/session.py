"""Runs a session of a run from the command line; a signal ends the search without loss."""

import contextlib
import os
import signal
import threading
from collections.abc import Collection, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tuner.core.errors import UsageError
from tuner.tuning.events import Interruption

if TYPE_CHECKING:
    from tuner.core.runs import RunSettings
    from tuner.db.store import Store
    from tuner.targets.backends import Backends
    from tuner.tuning.request import RunLimit
    from tuner.tuning.tuned_run import TunedRun


# ------------------------------------------------------------------------------
# Runs a search on the command line: progress on stderr; a signal ends the search without loss.


def run_session(
    backends: "Backends",
    store: "Store",
    settings: "RunSettings | None",
    resumed: int | None,
    retime: bool = False,
    limit: "RunLimit | None" = None,
) -> "TunedRun":
    """Starts a run with ``settings``, or resumes the stored run ``resumed``, and returns the run at its end.

    Prints progress on stderr; the first Ctrl-C or SIGTERM ends the run without loss.

    Args:
        backends: the parts that compile and measure.
        store: the results database.
        settings: settings of a new run, or None.
        resumed: number of the run to resume; used only without ``settings``.
        retime: whether a resumed run measures its best trials again.
        limit: a new limit of a resumed run; None: its stored limit.
    """
    from tuner.results.output.progress import progress  # not at start-up
    from tuner.tuning.run import begin, resume  # not at start-up

    interruption = Interruption()
    with ended_by_signals(interruption), progress() as observe:
        if settings is not None:
            return begin(settings, backends, store, interruption, observe)
        assert resumed is not None
        return resume(resumed, backends, store, interruption, observe, retime=retime, limit=limit)


def require_no_arguments(context: click.Context, arguments: Mapping[str, Any]) -> None:
    """Raises UsageError if any of ``arguments`` was given on the command line together with --resume.

    A resumed run has its stored settings. ``arguments`` are values by the names of parameters, among them
    "operation".
    """
    found = ", ".join(settings_given(context, arguments)) or arguments["operation"]
    if found is not None:
        raise UsageError(f"--resume cannot be combined with {found}: the run has its stored settings")


def settings_given(context: click.Context, names: Collection[str]) -> list[str]:
    """Returns the flags ("--seed") of the parameters in ``names`` ("seed") that the command line has."""
    options = (each for each in context.command.params if isinstance(each, click.Option))
    return [
        option.opts[0]
        for option in options
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]


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
