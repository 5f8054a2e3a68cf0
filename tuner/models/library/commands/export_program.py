"""``tuner export PROGRAM.mlir``: the schedule of the one problem that a program was tuned for."""

import contextlib
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.cli.operations import programs
from tuner.cli.options import SUFFIX, is_model
from tuner.core.errors import TunerError, UsageError
from tuner.core.problem import Problem
from tuner.core.requests import Campaign
from tuner.core.trials import StoredTrial
from tuner.results.best_trials import best_known

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.targets.backends import Backends


SHOWN = 4  # commands in a hint


def is_program(operation: str | None) -> bool:
    """Returns whether the argument OPERATION names a program: an MLIR file or a PyTorch model."""
    return operation is not None and (operation.endswith(SUFFIX) or is_model(operation))


def best_of_program(
    store: "Store",
    backends: "Backends",
    program: str,
    target: str,
    threads: int | None,
    machine: str | None,
) -> StoredTrial:
    """Returns the best trial of the one problem for which a program was tuned.

    ``program``: as it was typed for ``tuner tune``. Raises UsageError if no problem of it has a time; if
    several have, its hint names the trial of each.
    """

    def timed(problems: Iterable[Problem]) -> list[StoredTrial]:
        best = []
        for problem in problems:
            with contextlib.suppress(UsageError):  # it has no time
                best.append(best_known(store, backends, problem, target, threads, machine).best)
        return best

    campaign = _campaign_of(store, program)
    trials = []
    if campaign is not None:
        trials = timed(run.settings.problem for run in campaign.runs)
        _note_changes(program, campaign)
    if not trials:
        trials = timed(_contractions(program))
    if not trials:
        raise UsageError(f"{program}: no problem of it has a time yet", f"tuner tune {shlex.quote(program)}")
    if len(trials) > 1:
        listed = ", ".join(f"--trial {trial.id} ({trial.record.problem.key})" for trial in trials[:SHOWN])
        raise UsageError(
            f"{program}: {len(trials)} problems of it are tuned, each has its own schedule",
            f"tuner export with one of {listed}",
        )
    return trials[0]


def _campaign_of(store: "Store", program: str) -> Campaign | None:
    """Returns the latest campaign that tuned the fusions of a program; None if there is none."""
    path = str(Path(program).absolute())
    for campaign in store.campaigns():  # the latest first
        source = campaign.settings.program
        if source is not None and source.payload == path:
            return campaign
    return None


def _note_changes(program: str, campaign: Campaign) -> None:
    path = Path(program.rpartition(":")[0] if is_model(program) and ":" in program else program)
    if path.is_file() and path.stat().st_mtime > campaign.created.timestamp():
        print(f"note: {program} was changed after campaign {campaign.id} tuned it", file=sys.stderr)


def _contractions(program: str) -> list[Problem]:
    """Returns the contractions of a program, which are tuned one by one; [] if it has none.

    Raises UsageError for a file that is not there.
    """
    if not is_model(program) and not Path(program).is_file():
        raise UsageError(f"{program}: no such file")
    try:
        named, _left_out = programs().contractions(Path(program))
    except TunerError:  # of its file nothing but its fusions can be tuned
        return []
    return [problem.problem for problem in named]
