"""``tuner tune --shapes FILE``: tunes many problems under one budget."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tuner.cli.commands.tune_program import print_program, resumed_program
from tuner.cli.main import DONE, FAILED, INTERRUPTED, screen_columns
from tuner.cli.options import (
    PROBLEM_OPTIONS,
    open_known_store,
    open_store,
    print_found,
    run_limit,
    run_request,
)
from tuner.cli.session import ended_by_signals, require_no_arguments, settings_given
from tuner.core.errors import UsageError
from tuner.programs.lowering.matmul_recognition import model_contractions
from tuner.results.database_name import database_text
from tuner.results.output.program_tables import campaign_document, campaign_lines
from tuner.results.output.progress import campaign_progress
from tuner.tuning.campaign import begin_campaign, campaign_settings, resume_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.shapes_file import read_shapes

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.programs.tuning import TunedProgram
    from tuner.targets.backends import Backends
    from tuner.tuning.campaign import NamedProblem
    from tuner.tuning.tuned_run import TunedCampaign

MODEL_SUFFIX = ".mlir"
OF_FILE = ("dtype", "layout", "epilogue", "output_dtype", "align", "cache")  # each problem has its own
OF_ONE_RUN = ("warm_files", "entry", "arguments")  # options of other ways to tune


def tune_shapes(
    context: click.Context,
    backends: "Backends",
    database: str | None,
    as_json: bool,
    is_on_fleet: bool,
    file: Path,
    **texts: Any,
) -> int:
    """Tunes the problems of a file under one budget, prints the result, returns the exit code.

    ``texts`` are the options of ``tuner tune`` without those of a fleet, whose nodes do the work of
    ``backends`` if ``is_on_fleet``. Raises UsageError for a file with a mistake, and for options that
    belong to one problem.
    """
    _require_campaign_options(context, texts)
    of_runs = {name: typed for name, typed in texts.items() if name not in (*PROBLEM_OPTIONS, *OF_ONE_RUN)}
    of_runs["warm_start"] = False  # problems of the campaign are each other's warm start
    problems, left_out = _problems(file)
    for line in left_out:
        print(f"note: left out: {line}", file=sys.stderr)
    settings, members = campaign_settings(
        problems, lambda problem: run_request(problem, **of_runs), backends, file.name
    )
    with open_store(database) as store:
        tuned = _session(lambda *parts: begin_campaign(settings, members, backends, store, *parts))
    return _print(tuned, as_json, database, is_on_fleet=is_on_fleet)


def resume_shapes(
    context: click.Context,
    backends: "Backends",
    database: str | None,
    as_json: bool,
    is_on_fleet: bool,
    campaign: int,
    **texts: Any,
) -> int:
    """Resumes a stored campaign, prints the result, returns the exit code.

    ``texts`` are the options of ``tuner tune``, of which --trials and --budget are new limits. The nodes of a
    fleet do the work of ``backends`` if ``is_on_fleet``. Raises UsageError for other options, and for a
    campaign that cannot go on.
    """
    limit = run_limit(texts.pop("trials"), texts.pop("budget"))
    require_no_arguments(context, texts)
    with open_known_store(database) as store:
        tuned = _session(lambda *parts: resume_campaign(campaign, backends, store, *parts, limit=limit))
        program = None if is_on_fleet else _resumed_program(tuned, backends, store, database)
    if program is not None:
        return print_program(program, as_json, database)
    return _print(tuned, as_json, database, is_on_fleet=is_on_fleet)


def _resumed_program(
    tuned: "TunedCampaign", backends: "Backends", store: "Store", database: str | None
) -> "TunedProgram | None":
    """Returns the program whose fusions were tuned, timed again; None of problems that are no program's."""
    source = tuned.campaign.settings.program
    if source is None or tuned.is_interrupted:
        return None
    resumed = resumed_program(tuned, source, backends, store, database)
    if isinstance(resumed, str):
        print(f"note: the program is not timed: {resumed}", file=sys.stderr)
        return None
    return resumed


def _problems(file: Path) -> "tuple[tuple[NamedProblem, ...], tuple[str, ...]]":
    """Returns the problems of a file, and why contractions of a model are left out."""
    if file.suffix.lower() != MODEL_SUFFIX:
        return read_shapes(file), ()
    return model_contractions(file)


def _require_campaign_options(context: click.Context, texts: dict[str, Any]) -> None:
    if texts["operation"] is not None:
        raise UsageError(f"--shapes cannot be combined with {texts['operation']}: the file has the problems")
    found = settings_given(context, (*OF_FILE, *OF_ONE_RUN))
    is_warm = context.get_parameter_source("warm_start") is ParameterSource.COMMANDLINE
    found += ["--no-warm-start"] * is_warm
    if found:
        why = "each problem of the file has its own" if found[0][2:].replace("-", "_") in OF_FILE else ""
        raise UsageError(f"--shapes cannot be combined with {', '.join(found)}{': ' if why else ''}{why}")


def _session(work: Any) -> "TunedCampaign":
    interruption = Interruption()
    with ended_by_signals(interruption), campaign_progress() as observe:
        tuned: TunedCampaign = work(interruption, observe)
    return tuned


def _print(tuned: "TunedCampaign", as_json: bool, database: str | None, *, is_on_fleet: bool) -> int:
    named = database_text(database)
    print_found(as_json, campaign_document(tuned), *campaign_lines(tuned, screen_columns(), named))
    if tuned.is_interrupted:
        print("interrupted; everything measured is stored. Go on with:", file=sys.stderr)
        on_fleet = " --fleet" * is_on_fleet
        print(f"  tuner tune --resume campaign:{tuned.campaign.id}{on_fleet}{named}", file=sys.stderr)
        return INTERRUPTED
    return DONE if tuned.has_worked else FAILED
