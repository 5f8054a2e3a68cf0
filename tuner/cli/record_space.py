"""``tuner record-space``: tries every allowed point of a shape and writes what became of them as T4."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.commands import DONE, FAILED, INTERRUPTED
from tuner.cli.options import (
    composition_of,
    database_option,
    debug_option,
    json_option,
    open_store,
    print_json,
    problem_of,
    problem_options,
    target_options,
)
from tuner.cli.running import run_session, settings_given
from tuner.errors import UsageError

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.runs import RunSettings
    from tuner.tuning.composition import Composition
    from tuner.tuning.session import TunedRun

ALL, DRAWN = "exhaustive", "random"  # samplers: of every point, and of --limit


@click.command("record-space")
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="MxNxK")
@problem_options
@target_options
@click.option("--strategy", multiple=True, help="Strategy to record; may be repeated. Default: all that fit.")
@click.option("--space", type=click.Path(path_type=Path), help="Search space file. Default: the one shipped.")
@click.option("--limit", type=int, help="Record only so many points, drawn evenly. Default: all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw and the inputs.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--workers", type=int, help="Candidates compiled at once. Default: the cores, at most 4.")
@click.option("--resume", type=int, metavar="RUN", help="Go on with an interrupted recording.")
@click.option(
    "-o",
    "--file",
    "output",
    type=click.Path(path_type=Path),
    required=True,
    help="Write to this file; compressed when it ends in .gz.",
)
@database_option
@json_option
@debug_option
@click.pass_context
def record_space(
    context: click.Context,
    /,
    resume: int | None,
    output: Path,
    database: str | None,
    as_json: bool,
    **words: object,
) -> None:
    """Measures every feasible point of a shape and writes them as T4, for replays without hardware.

    Every trial is stored as in any run; an interrupted recording can be gone on with.

    Example: tuner record-space matmul 64x64x64 --strategy matmul_cpu_packed -o space.t4.json.gz
    """
    composition = composition_of(context)
    _require_folder(output)
    if resume is None:
        settings = _settings(composition, **words)  # type: ignore[arg-type]
    else:
        _require_no_settings(context, words)
        settings = None
    with open_store(database) as store:
        if resume is not None:
            _require_recording(store, resume)
        tuned = run_session(composition, store, settings, resume)
        if tuned.is_interrupted:
            print("interrupted; everything measured is stored. Go on with:", file=sys.stderr)
            print(
                f"  tuner record-space --resume {tuned.run.id} -o {shlex.quote(str(output))}", file=sys.stderr
            )
            context.exit(INTERRUPTED)
        _write(composition, store, tuned, output)
        _print(tuned, output, as_json)
    context.exit(DONE if tuned.has_worked else FAILED)


def _require_no_settings(context: click.Context, words: dict[str, object]) -> None:
    """Raises UsageError for words beside --resume that the stored settings decide."""
    if words["operation"] is not None:
        raise UsageError(f"--resume: goes on with stored settings, found {words['operation']} beside it")
    given = settings_given(context, words)
    if given:
        raise UsageError(f"--resume: goes on with stored settings, found {given[0]} beside it")


def _settings(
    composition: "Composition",
    operation: str | None,
    shape: str | None,
    dtype: str,
    layout: str,
    epilogue: str,
    output_dtype: str,
    target: str,
    chip: str,
    strategy: tuple[str, ...],
    space: Path | None,
    limit: int | None,
    seed: int,
    threads: int,
    workers: int | None,
) -> "RunSettings":
    """Returns settings of a run over the whole feasible set, or an even draw from it."""
    from tuner.api import run_settings

    if operation is None or shape is None:
        raise UsageError(
            "record-space: found no operation and shape, allowed such as: "
            "tuner record-space matmul 64x64x64 -o space.t4.json.gz"
        )
    if limit is not None and limit < 1:
        raise UsageError(f"limit: found {limit}, allowed 1 or more")
    if target.startswith("replay:"):
        raise UsageError(
            f"target: found {target!r}, allowed one that measures: a replay is a recording already"
        )
    settings = run_settings(
        problem_of(operation, shape, dtype, layout, epilogue, output_dtype),
        composition,
        target=target,
        chip=chip,
        threads=threads,
        strategies=strategy,
        space=space,
        sampler=ALL if limit is None else DRAWN,
        seed=seed,
        trials=1 if limit is None else limit,
        workers=workers,
        fresh=True,  # times of other sessions do not compare
    )
    if limit is not None:
        return replace(settings, first=())  # what is proposed first would not be drawn evenly
    plan = composition.plan(settings, composition.target_machine(settings.target))
    return replace(settings, trials=plan.feasible.rows)


def _require_folder(output: Path) -> None:
    """Raises UsageError for a place that cannot be written to, before hours are spent."""
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: found no folder {output.absolute().parent}, allowed one that is there")
    if output.is_dir():
        raise UsageError(f"{output}: found a folder, allowed a file to write")


def _require_recording(store: "Store", run: int) -> None:
    """Raises UsageError for a run that chose its points or reused times: its file would be no whole space."""
    settings = store.run(run).settings
    if settings.sampler not in (ALL, DRAWN) or not settings.fresh or settings.target.startswith("replay:"):
        raise UsageError(
            f"--resume: found run {run}, a search by {settings.sampler} on {settings.target}, "
            "allowed one that record-space began"
        )


def _write(composition: "Composition", store: "Store", tuned: "TunedRun", output: Path) -> None:
    from tuner.export import write_atomically
    from tuner.recorded.t4_writing import Recording, t4_bytes
    from tuner.runs import TrialQuery

    run = tuned.run
    spaces = composition.plan(run.settings, run.machine).feasible.spaces
    trials = store.trials(TrialQuery(run=run.id, sort="number"))
    write_atomically(output, t4_bytes(Recording((run,), trials, spaces), output.suffix == ".gz"))


def _print(tuned: "TunedRun", output: Path, as_json: bool) -> None:
    from tuner.cli.result import counts_words
    from tuner.report import counts_document, problem_document

    run = tuned.run
    if as_json:
        print_json(
            {
                "run": run.id,
                "file": str(output),
                "problem": problem_document(run.settings.problem),
                "target": run.settings.target,
                "counts": counts_document(tuned.counts),
                "bytes": output.stat().st_size,
                "seconds": tuned.seconds,
            }
        )
        return
    print(f"recorded  {counts_words(tuned.counts)} in {tuned.seconds:.0f} s")
    print(f"file      {output}, {output.stat().st_size} bytes")
    print(f"next      tuner tune {run.settings.problem.operation} {run.settings.problem.shape}", end="")
    print(f" --target replay:{shlex.quote(str(output))}")
