"""Runs a session of a run from the command line; a signal ends the search without loss."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Protocol

import click

from tuner.cli.main import BEGAN_S, DONE, FAILED, INTERRUPTED
from tuner.cli.options import is_typed
from tuner.core.serialization import printable
from tuner.results.database_name import shown_database
from tuner.tuning.events import Interruption

if TYPE_CHECKING:
    from tuner.core.runs import RunSettings
    from tuner.db.store import Store
    from tuner.targets.backends import Backends
    from tuner.tuning.request import RunLimit
    from tuner.tuning.tuned_run import TunedRun

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STDERR = 2  # file descriptor on which progress is shown
SHOW_CURSOR = b"\r\x1b[?25h"  # the live progress line hides the cursor, and a killed process leaves it hidden


def run_session(
    backends: "Backends",
    store: "Store",
    settings: "RunSettings | None",
    resumed: int | None,
    retime: bool = False,
    limit: "RunLimit | None" = None,
) -> "TunedRun":
    """Starts a run by ``settings``, or resumes the run with the id ``resumed``; shows progress.

    One of ``settings`` and ``resumed`` is None. Returns the run at its end. The first Ctrl-C ends the search,
    without loss. For a resumed run, ``retime`` re-measures the best trials in place of a search, and
    ``limit`` is a new limit of trials or time, None: the stored one.
    """
    from tuner.results.output.progress import progress  # not at start-up
    from tuner.tuning.run import begin, resume  # not at start-up

    interruption = Interruption()
    with ended_by_signals(interruption), progress() as observe:
        if settings is not None:
            began_s = click.get_current_context().meta[BEGAN_S]
            return begin(settings, backends, store, interruption, observe, began_s=began_s)
        assert resumed is not None
        return resume(resumed, backends, store, interruption, observe, retime=retime, limit=limit)


def settings_given(context: click.Context, names: Collection[str]) -> list[str]:
    """Returns the flags ("--seed") of the parameters in ``names`` ("seed") that the command line has."""
    options = [param for param in context.command.params if isinstance(param, click.Option)]
    return [option.opts[0] for option in options if option.name in names and is_typed(context, option.name)]


class Tuned(Protocol):
    """A port: a tuned run, campaign or program, for its exit code."""

    @property
    def is_interrupted(self) -> bool:
        """True if a signal ended the search."""

    @property
    def has_worked(self) -> bool:
        """True if a candidate was timed, verified, or compiled for another machine.

        For a campaign: one candidate per problem. For a program that ran, its outputs must also be right.
        """


def exit_code(tuned: Tuned) -> int:
    """Returns a command's exit code: INTERRUPTED after a signal, else DONE if ``has_worked``, else FAILED."""
    if tuned.is_interrupted:
        return INTERRUPTED
    if tuned.has_worked:
        return DONE
    return FAILED


def print_stored(database: str | None) -> None:
    """Prints on stderr in which database all trials are stored."""
    print(f"all trials are stored in {printable(shown_database(database))}", file=sys.stderr)


def print_interrupted(command: str) -> None:
    """Prints on stderr that a search was interrupted, and the command that continues it."""
    print(f"interrupted; everything measured is stored. Go on with:\n  {command}", file=sys.stderr)


@contextlib.contextmanager
def ended_by_signals(interruption: Interruption) -> Iterator[None]:
    """Context manager: the first SIGINT or SIGTERM asks ``interruption``, the second kills the process.

    Restores the handlers at the end. Has no effect outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():  # only there Python sets handlers
        yield
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if interruption.is_asked:
            if os.isatty(STDERR):
                with contextlib.suppress(OSError):  # the descriptor: a thread may hold the lock of stderr
                    os.write(STDERR, SHOW_CURSOR)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        interruption.ask()

    before = [signal.signal(number, handle) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
