"""``tuner tune --shapes FILE``: tunes many problems under one budget."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.commands.tune_program import print_program, resumed_program
from tuner.cli.main import BEGAN_S, screen_columns
from tuner.cli.options import (
    OF_ONE_PROBLEM,
    PROBLEM_OPTIONS,
    SUFFIX,
    is_typed,
    open_known_store,
    open_store,
    print_found,
    run_limit,
    run_request,
)
from tuner.cli.session import (
    ended_by_signals,
    exit_code,
    print_interrupted,
    require_no_arguments,
    settings_given,
)
from tuner.core.errors import UsageError
from tuner.programs.lowering.matmul_recognition import model_contractions
from tuner.results.database_name import database_text
from tuner.results.output.formatting import wrapped
from tuner.results.output.program_tables import campaign_document, campaign_lines
from tuner.results.output.progress import campaign_progress
from tuner.tuning.campaign import begin_campaign, campaign_settings, resume_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.shapes_file import read_shapes

if TYPE_CHECKING:
    from tuner.targets.backends import Backends
    from tuner.tuning.tuned_run import TunedCampaign

NOT_OF_CAMPAIGNS = ("warm_files", "entry", "arguments")  # parameters of ``tuner tune`` that --shapes excludes


def tune_shapes(
    context: click.Context,
    backends: "Backends",
    database: str | None,
    as_json: bool,
    is_on_fleet: bool,
    file: Path,
    **options: Any,
) -> int:
    """Tunes the problems of a file under one budget, prints the result, returns the exit code."""
    _require_campaign_options(context, options)
    of_others = (*PROBLEM_OPTIONS, *NOT_OF_CAMPAIGNS)
    run_options = {name: typed for name, typed in options.items() if name not in of_others}
    run_options["warm_start"] = False  # problems of the campaign are each other's warm start
    is_model = file.suffix.lower() == SUFFIX
    problems, left_out = model_contractions(file) if is_model else (read_shapes(file), ())
    for line in left_out:
        print(f"note: left out: {line}", file=sys.stderr)
    settings, members = campaign_settings(
        problems, lambda problem: run_request(problem, **run_options), backends, file.name
    )
    with open_store(database) as store:
        begin = partial(begin_campaign, settings, members, backends, store, began_s=context.meta[BEGAN_S])
        tuned = _session(begin)
    return _print(tuned, as_json, database, is_on_fleet=is_on_fleet)


def resume_shapes(
    context: click.Context,
    backends: "Backends",
    database: str | None,
    as_json: bool,
    is_on_fleet: bool,
    campaign: int,
    **options: Any,
) -> int:
    """Resumes a campaign as ``tune_shapes`` tunes one; of ``options``, --trials and --budget are allowed."""
    limit = run_limit(options.pop("trials"), options.pop("budget"))
    require_no_arguments(context, options)
    program = None
    with open_known_store(database) as store:
        tuned = _session(lambda *parts: resume_campaign(campaign, backends, store, *parts, limit=limit))
        source = tuned.campaign.settings.program
        if source is not None and not is_on_fleet and not tuned.is_interrupted:
            program = resumed_program(tuned, source, backends, store, database)
    if isinstance(program, str):
        print(f"note: the program is not timed: {program}", file=sys.stderr)
    elif program is not None:
        return print_program(program, as_json, database)
    return _print(tuned, as_json, database, is_on_fleet=is_on_fleet)


def _require_campaign_options(context: click.Context, options: dict[str, Any]) -> None:
    if options["operation"] is not None:
        raise UsageError(
            f"--shapes cannot be combined with {options['operation']}: the file has the problems"
        )
    given = settings_given(context, (*OF_ONE_PROBLEM, *NOT_OF_CAMPAIGNS))
    given += ["--no-warm-start"] * is_typed(context, "warm_start")
    if given:
        # flag to parameter: --output-dtype is output_dtype
        is_of_problem = given[0][2:].replace("-", "_") in OF_ONE_PROBLEM
        why = ": each problem of the file has its own" if is_of_problem else ""
        raise UsageError(f"--shapes cannot be combined with {', '.join(given)}{why}")


def _session(work: Any) -> "TunedCampaign":
    interruption = Interruption()
    with ended_by_signals(interruption), campaign_progress() as observe:
        tuned: TunedCampaign = work(interruption, observe)
    return tuned


def _print(tuned: "TunedCampaign", as_json: bool, database: str | None, *, is_on_fleet: bool) -> int:
    named = database_text(database)
    lines = wrapped(campaign_lines(tuned, screen_columns(), named), screen_columns())
    print_found(as_json, campaign_document(tuned), *lines)
    if tuned.is_interrupted:
        on_fleet = " --fleet" * is_on_fleet
        print_interrupted(f"tuner tune --resume campaign:{tuned.campaign.id}{on_fleet}{named}")
    return exit_code(tuned)
