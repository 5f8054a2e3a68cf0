"""``python -m benchmarks record-space``: measures all preferred configurations of a problem, or a sample."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import click

from benchmarks.t4_writer import Recording, t4_bytes
from tuner.cli.forms import CommandForm, ProblemOptions, ResultOptions, RunOptions, TypedOption, read_options
from tuner.cli.main import INTERRUPTED
from tuner.cli.options import (
    backends_of,
    database_option,
    json_option,
    open_known_store,
    open_store,
    print_found,
    problem_options,
    space_option,
    target_options,
)
from tuner.cli.session import exit_code, print_interrupted, run_session
from tuner.cli.tune_forms import resumed_refusal
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.problem_text import tune_command
from tuner.core.queries import TaskQuery, TrialQuery
from tuner.core.runs import RunSettings
from tuner.results.database_name import database_text
from tuner.results.output.files import write_atomically
from tuner.results.output.json_documents import counts_document, problem_document
from tuner.results.output.run_result import counts_text
from tuner.tuning.request import run_settings

if TYPE_CHECKING:
    from tuner.db.store import Store


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
@space_option
@click.option("--limit", type=int, help="Record only so many points, drawn at random. Default: all.")
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
    **_options: Any,
) -> None:
    """Measures every preferred configuration of a problem, and writes the results as T4 for replays.

    A configuration is preferred if it breaks no preference of the search space file. A replay needs no
    hardware. Every trial is stored as in any run; an interrupted recording can be continued.

    Example: python -m benchmarks record-space matmul 64x64x64 -o space.t4.json.gz
    """
    backends = backends_of(context)
    # before hours of measuring
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: no such folder: {output.absolute().parent}")
    if output.is_dir():
        raise UsageError(f"{output}: is a folder, not a file to write")
    settings = None
    opened: Callable[[str | None], Store] = open_known_store
    if resume is None:
        settings, opened = _settings(context), open_store
    else:
        ResumedRecording.of(context)  # refuses options of a new one
    with opened(database) as store:
        if resume is not None:
            _require_recording(store, resume)
        tuned = run_session(backends, store, settings, resume)
        run, named = tuned.run, database_text(database)
        if tuned.is_interrupted:
            print_interrupted(
                f"python -m benchmarks record-space --resume {run.id} -o {shlex.quote(str(output))}{named}"
            )
            context.exit(INTERRUPTED)
        spaces = backends.target(run.settings.target).plan(run.settings, run.machine).feasible.spaces
        trials = store.trials(TrialQuery(run=run.id, sort="number"))
        write_atomically(output, t4_bytes(Recording((run,), trials, spaces), output.suffix == ".gz"))
    size_bytes = output.stat().st_size
    task = TaskQuery.of(run.settings.problem, target=f"replay:{output}")
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
        f"next      {tune_command(task)}{named}",
    )
    context.exit(exit_code(tuned))


@final
@dataclass(frozen=True)
class ResumedRecording(CommandForm):
    """``record-space --resume RUN -o FILE``: a recording goes on by its stored settings."""

    resume: int
    output: Path
    result: ResultOptions

    @classmethod
    def refusal(cls, others: tuple[TypedOption, ...]) -> UsageError:
        return resumed_refusal(others)


def _settings(context: click.Context) -> RunSettings:
    backends = backends_of(context)
    problem = read_options(ProblemOptions, context).required_problem(context, EXAMPLE_SIZES)
    run = read_options(RunOptions, context)
    limit = context.params["limit"]
    if limit is not None and limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    if not TargetName.parse(run.target_text).has_machine:
        raise UsageError(f"target {run.target_text!r} measures nothing: it is a recording already")
    sampler, trials = (ALL, 1) if limit is None else (DRAWN, limit)  # 1: replaced below by the number of all
    # fresh: times of other sessions are not comparable
    request = replace(run, sampler=sampler, trials=trials, fresh=True).request(problem)
    settings = run_settings(request, backends)
    source = backends.target(settings.target)
    feasible = source.plan(settings, source.machine(settings.target)).feasible
    points = int(feasible.is_preferred.sum()) or feasible.rows
    if limit is not None:  # initial configurations would bias the sample
        return replace(settings, first=(), trials=min(limit, points))
    return replace(settings, trials=points)


def _require_recording(store: "Store", run: int) -> None:
    settings = store.run(run).settings  # of a search, the file would not be a whole space
    if settings.sampler not in (ALL, DRAWN) or not settings.fresh or not settings.target.has_machine:
        raise UsageError(
            f"--resume: run {run} is a search by {settings.sampler} on {settings.target}, "
            "not one that record-space began"
        )
