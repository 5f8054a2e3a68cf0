"""Runs a search on the command line: progress on stderr; a signal ends the search without loss."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.core.runs import RunSettings
    from tuner.db.store import Store
    from tuner.tuning.composition import Composition
    from tuner.tuning.run_limit import RunLimit
    from tuner.tuning.tuned_run import TunedRun


def run_session(
    composition: "Composition",
    store: "Store",
    settings: "RunSettings | None",
    resumed: int | None,
    retime: bool = False,
    limit: "RunLimit | None" = None,
) -> "TunedRun":
    """Starts a run with ``settings``, or resumes the stored run ``resumed``, and returns the run at its end.

    Prints progress on stderr; the first Ctrl-C or SIGTERM ends the run without loss.

    Args:
        composition: the parts that compile and measure.
        store: the results database.
        settings: settings of a new run, or None.
        resumed: number of the run to resume; used only without ``settings``.
        retime: whether a resumed run measures its best trials again.
        limit: a new limit of a resumed run; None: its stored limit.
    """
    from tuner.cli.signals import ended_by_signals
    from tuner.output.progress import progress
    from tuner.tuning.interruption import Interruption
    from tuner.tuning.run import begin, resume

    interruption = Interruption()
    with ended_by_signals(interruption), progress() as observe:
        if settings is not None:
            return begin(settings, composition, store, interruption, observe)
        assert resumed is not None
        return resume(resumed, composition, store, interruption, observe, retime=retime, limit=limit)


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
