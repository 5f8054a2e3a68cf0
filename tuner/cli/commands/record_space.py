"""``tuner record-space``: tries every preferred configuration of a problem and writes the results as T4."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.main import DONE, FAILED, INTERRUPTED
from tuner.cli.options import (
    composition_of,
    database_option,
    json_option,
    open_known_store,
    open_store,
    popped_problem,
    print_found,
    problem_options,
    run_request,
    target_options,
)
from tuner.cli.run_session import require_no_arguments, run_session
from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName

if TYPE_CHECKING:
    from tuner.core.runs import RunSettings
    from tuner.db.store import Store
    from tuner.tuning.composition import Composition
    from tuner.tuning.tuned_run import TunedRun

EXAMPLE_SIZES = "64x64x64"
ALL, DRAWN = "exhaustive", "random"  # samplers: all configurations, or a random sample of --limit


@click.command("record-space")
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="[Bx]MxNxK")
@problem_options
@target_options
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    help="Strategy to record; may be repeated. Default: all that fit.",
)
@click.option("--space", type=click.Path(path_type=Path), help="Search space file. Default: the one shipped.")
@click.option("--limit", type=int, help="Record only so many points, drawn evenly. Default: all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw and the inputs.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--workers", type=int, help="Candidates compiled at once. Default: the cores, at most 4.")
@click.option("--resume", type=int, metavar="RUN", help="Continue an interrupted recording.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Write to this file; compressed when it ends in .gz.",
)
@database_option
@json_option
@click.pass_context
def record_space(
    context: click.Context,
    /,
    resume: int | None,
    output: Path,
    database: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Measures every preferred configuration of a problem, and writes the results as T4 for replays.

    A configuration is preferred if it breaks no preference of the search space file. A replay needs no
    hardware. Every trial is stored as in any run; an interrupted recording can be continued.

    Example: tuner record-space matmul 64x64x64 --strategy matmul_cpu_packed -o space.t4.json.gz
    """
    composition = composition_of(context)
    _require_folder(output)
    if resume is None:
        settings = _settings(context, **arguments)
    else:
        require_no_arguments(context, arguments)
        settings = None
    opened = open_store if resume is None else open_known_store
    with opened(database) as store:
        if resume is not None:
            _require_recording(store, resume)
        tuned = run_session(composition, store, settings, resume)
        if tuned.is_interrupted:
            _print_resume_hint(tuned.run.id, output, database)
            context.exit(INTERRUPTED)
        _write(composition, store, tuned, output)
        _print(tuned, output, database, as_json)
    context.exit(DONE if tuned.has_worked else FAILED)


def _print_resume_hint(run: int, output: Path, database: str | None) -> None:
    from tuner.run_history.which_database import database_text

    arguments = f"{run} -o {shlex.quote(str(output))}{database_text(database)}"
    print("interrupted; everything measured is stored. Go on with:", file=sys.stderr)
    print(f"  tuner record-space --resume {arguments}", file=sys.stderr)


def _settings(context: click.Context, limit: int | None, **arguments: Any) -> "RunSettings":
    """Returns settings of a run over all preferred configurations, or over a uniform sample of ``limit``."""
    from tuner.tuning.settings import run_settings

    composition = composition_of(context)
    problem = popped_problem(context, arguments, EXAMPLE_SIZES)
    if limit is not None and limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    if not TargetName.parse(arguments["target"]).has_machine:
        raise UsageError(f"target {arguments['target']!r} measures nothing: it is a recording already")
    sampler, trials = (ALL, 1) if limit is None else (DRAWN, limit)
    # fresh: times of other sessions are not comparable
    request = run_request(problem, sampler=sampler, trials=trials, fresh=True, **arguments)
    settings = run_settings(request, composition)
    source = composition.outcomes(settings.target)
    feasible = source.plan(settings, source.machine(settings.target)).feasible
    points = int(feasible.is_preferred.sum()) or feasible.rows
    if limit is not None:  # first configurations would bias the sample
        return replace(settings, first=(), trials=min(limit, points))
    return replace(settings, trials=points)


def _require_folder(output: Path) -> None:
    """Raises UsageError for an output path that cannot be written to, before hours of measuring."""
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: no such folder: {output.absolute().parent}")
    if output.is_dir():
        raise UsageError(f"{output}: is a folder, not a file to write")


def _require_recording(store: "Store", run: int) -> None:
    """Raises UsageError for a run that record-space did not begin: its file would not be a whole space."""
    settings = store.run(run).settings
    if settings.sampler not in (ALL, DRAWN) or not settings.fresh or not settings.target.has_machine:
        raise UsageError(
            f"--resume: run {run} is a search by {settings.sampler} on {settings.target}, "
            "not one that record-space began"
        )


def _write(composition: "Composition", store: "Store", tuned: "TunedRun", output: Path) -> None:
    from tuner.core.runs import TrialQuery
    from tuner.output.atomic_write import write_atomically
    from tuner.space.recorded.t4_writing import Recording, t4_bytes

    run = tuned.run
    spaces = composition.outcomes(run.settings.target).plan(run.settings, run.machine).feasible.spaces
    trials = store.trials(TrialQuery(run=run.id, sort="number"))
    write_atomically(output, t4_bytes(Recording((run,), trials, spaces), output.suffix == ".gz"))


def _print(tuned: "TunedRun", output: Path, database: str | None, as_json: bool) -> None:
    from tuner.core.runs import TaskQuery
    from tuner.output.json_documents import counts_document, problem_document
    from tuner.output.result import counts_text
    from tuner.run_history.which_database import database_text
    from tuner.tuning.advice import tune_command

    run = tuned.run
    size_bytes = output.stat().st_size
    asked = TaskQuery.of(run.settings.problem, target=f"replay:{output}")
    document = {
        "run": run.id,
        "file": str(output),
        "problem": problem_document(run.settings.problem),
        "target": run.settings.target.text,
        "counts": counts_document(tuned.counts),
        "bytes": size_bytes,
        "seconds": tuned.seconds,
    }
    print_found(
        as_json,
        document,
        f"recorded  {counts_text(tuned.counts)} in {tuned.seconds:.0f} s",
        f"file      {output}, {size_bytes} bytes",
        f"next      {tune_command(asked)}{database_text(database)}",
    )
