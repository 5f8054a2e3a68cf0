"""Tunes a program of groups from Python: for ``tuner.torch.tune``."""

from pathlib import Path
from typing import TYPE_CHECKING

from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.programs.group_tuning import GroupTuning, child_group_parts
from tuner.programs.options import ProgramOptions
from tuner.programs.program_outcome import program_result
from tuner.programs.request import ProgramRequest
from tuner.programs.tuning import TunedProgram
from tuner.tuning.interruption import Interruption
from tuner.tuning.many_shapes.group_events import GroupObserver, ignore_group
from tuner.tuning.parts.real import real_composition
from tuner.tuning.run_request import RunRequest

if TYPE_CHECKING:
    from tuner.core.problem import Problem

CPU = "cpu"


def tune_text(
    text: str,
    *,
    entry: str | None = None,
    trials: int | None = None,
    budget_s: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    database: str | Path | None = None,
    source: str = "",
    observe: GroupObserver = ignore_group,
    threads: int = 1,
) -> TunedProgram:
    """Tunes the groups of an MLIR program on this processor under one budget; times it tuned and untuned.

    Args:
        text: MLIR text of a function on tensors, with its constants.
        entry: the function; None: ``main``, or the only public one.
        trials: candidates of all groups together; None: as the budget allows, without one 8 for each group.
        budget_s: seconds of the search.
        seed: of the order of trials and of random inputs.
        workers: candidates compiled at once.
        database: path or URL of the results database; None: the default one.
        source: name of the program, stored with the runs.
        observe: called with each event.
        threads: that the program is timed on in the end; each group is tuned on one.

    Raises UsageError for a program that has no groups to tune, with the reason, and for wrong limits.
    """
    from tuner.run_history.opened_store import open_or_create
    from tuner.run_history.which_database import which_database

    def request_of(problem: "Problem") -> RunRequest:
        return RunRequest(
            problem,
            CPU,
            trials=trials,
            budget_s=budget_s,
            seed=seed,
            workers=workers,
            warm_start=False,
        )

    request = ProgramRequest(
        text,
        TargetName(CPU),
        entry,
        ProgramOptions(seed=seed, threads=threads),
        scripts=(),
        is_compared=False,
    )
    with open_or_create(database) as store:
        tuning = GroupTuning(
            real_composition(), child_group_parts(), store, which_database(database), Interruption(), observe
        )
        found = tuning.found(request, source or "program")
        if not found.problems:
            reason = found.why_none or "; ".join(found.left_out) or "it has no operations"
            raise UsageError(f"{source or 'program'}: has no groups of operations to tune: {reason}")
        return tuning.tune(request, found, request_of, source)


def store_result(tuned: TunedProgram) -> None:
    """Stores what came of a tuned program of groups anew: with baselines that were timed after it."""
    from tuner.run_history.opened_store import open_or_create

    assert tuned.run_group is not None
    with open_or_create(tuned.request.database) as store:
        store.set_program_result(tuned.run_group.group.id, program_result(tuned))
