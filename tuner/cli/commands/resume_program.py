"""``tuner tune --resume group:N`` of a program: compiled and timed again once its groups are tuned."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.cli.commands.tune_program import program_parts
from tuner.core.errors import TunerError, UsageError

if TYPE_CHECKING:
    from tuner.core.program_result import ProgramSource
    from tuner.db.store import Store
    from tuner.programs.group_tuning import GroupTuning
    from tuner.programs.request import ProgramRequest
    from tuner.programs.tunable_groups import TunableGroups
    from tuner.programs.tuning import TunedProgram
    from tuner.tuning.composition import Composition
    from tuner.tuning.many_shapes.tuned_group import TunedGroup


def resumed_program(
    tuned: "TunedGroup",
    source: "ProgramSource",
    composition: "Composition",
    store: "Store",
    database: str | None,
) -> "TunedProgram | str":
    """Compiles, compares and times the program of a resumed group, as the first command does.

    Returns why that is not possible where the program's file is gone, or has other groups by now.
    """
    from tuner.output.group_progress import group_progress
    from tuner.programs.group_tuning import GroupTuning
    from tuner.run_history.which_database import which_database
    from tuner.tuning.interruption import Interruption

    began_s = time.monotonic()
    with group_progress() as observe:
        tuning = GroupTuning(
            composition, program_parts(), store, which_database(database), Interruption(), observe
        )
        try:
            request, found = _read(tuned, source, tuning)
        except TunerError as error:
            return error.message
        resumed = tuning.finished(request, found, tuned, began_s)
    return replace(resumed, seconds=tuned.group.seconds + resumed.seconds)


def _read(
    tuned: "TunedGroup", source: "ProgramSource", tuning: "GroupTuning"
) -> "tuple[ProgramRequest, TunableGroups]":
    """Returns the program's request and groups. Raises UsageError where they are not those of the runs."""
    from tuner.programs.options import ProgramOptions
    from tuner.programs.request import ProgramRequest
    from tuner.programs.torch_models.model_file import is_model
    from tuner.programs.torch_models.payload_source import read_payload_text

    request = ProgramRequest(
        text=read_payload_text(Path(source.payload)),
        target=tuned.group.runs[0].settings.target,
        entry=source.entry,
        options=ProgramOptions(seed=tuned.group.settings.seed),
        arguments=source.arguments,
        is_compared=True,
        model=source.payload if is_model(source.payload) else "",
        baselines=source.baselines,
    )
    found = tuning.found(request, source.payload, source.cache)
    if tuple(each.problem for each in found.problems) != tuned.problems:
        raise UsageError(f"{source.payload}: has other groups of operations than those that were tuned")
    return request, found
