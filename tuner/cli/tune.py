"""``tuner tune``: searches for the best schedule of a problem."""

import shlex
import sys
from collections import Counter
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
    parse_seconds,
    print_json,
    problem_of,
    problem_options,
    target_options,
)
from tuner.cli.running import run_session, settings_given
from tuner.cli.tune_program import is_payload, tune_payload
from tuner.errors import Failure, UsageError

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.runs import RunSettings
    from tuner.tuning.composition import Composition
    from tuner.tuning.session import TunedRun

REASONS_SHOWN = 3


@click.command()
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="MxNxK")
@problem_options
@target_options
@click.option("--strategy", multiple=True, help="Strategy to try; may be repeated. Default: all that fit.")
@click.option("--space", type=click.Path(path_type=Path), help="Search space file. Default: the one shipped.")
@click.option(
    "--sampler",
    help="How to choose: tpe, trees, local, evolution, ensemble, random, exhaustive, or optuna:NAME, one of "
    "Optuna's own. Default: tpe; random where nothing is timed.",
)
@click.option("--trials", type=int, help="Ends after so many. Default: 100 without --budget.")
@click.option("--budget", metavar="TIME", help="Ends the search after 60s, 5m or 1h; the finals come on top.")
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds propose equal trials.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--workers", type=int, help="Candidates compiled at once. Default: the cores, at most 4.")
@click.option("--fresh", is_flag=True, help="Measure again what earlier runs have measured.")
@click.option("--no-warm-start", is_flag=True, help="Begin with nothing that was best for other problems.")
@click.option(
    "--warm-start",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Begin with the best of a space that record-space wrote, too; may be repeated.",
)
@click.option("--entry", metavar="NAME", help="Function of a payload. Default: the only public one.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="N=[SIZES]CONTENT",
    help="An argument of a payload, as for tuner run; others are random.",
)
@click.option("--resume", type=int, metavar="RUN", help="Go on with a run, by its stored settings.")
@database_option
@json_option
@debug_option
@click.pass_context
def tune(
    context: click.Context, /, resume: int | None, database: str | None, as_json: bool, **words: object
) -> None:
    """Tunes one operation at one size, or each matmul of a program; every trial is stored.

    Ctrl-C ends the run without loss; a second one kills at once. A program is a .mlir file: its matmuls are
    tuned one after another, then it runs as a whole.

    Example: tuner tune matmul 512x512x512 --dtype f32 --budget 60s
    """
    composition = composition_of(context)
    if is_payload(words["operation"]) and resume is None:
        context.exit(tune_payload(context, composition, database, as_json, **words))
    _reject_words_of_programs(entry=words.pop("entry"), arg=words.pop("arguments"))
    if resume is None:
        settings = _settings(composition, **words)  # type: ignore[arg-type]
    else:
        _require_no_settings(context, words)
        settings = None
    with open_store(database) as store:
        tuned = run_session(composition, store, settings, resume)
        code = INTERRUPTED if tuned.is_interrupted else DONE if tuned.has_worked else FAILED
        _print(tuned, store, as_json, _database_words(context, database))
    context.exit(code)


def _reject_words_of_programs(**words: object) -> None:
    for name, found in words.items():
        if found:
            raise UsageError(
                f"--{name}: found {found!r}, allowed with a payload, such as: tuner tune payload.mlir"
            )


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
    sampler: str | None,
    trials: int | None,
    budget: str | None,
    seed: int,
    threads: int,
    workers: int | None,
    fresh: bool,
    no_warm_start: bool,
    warm_start: tuple[Path, ...],
) -> "RunSettings":
    from tuner.api import run_settings

    if operation is None or shape is None:
        raise UsageError("tune: found no operation and shape, allowed such as: tuner tune matmul 512x512x512")
    return run_settings(
        problem_of(operation, shape, dtype, layout, epilogue, output_dtype),
        composition,
        target=target,
        chip=chip,
        threads=threads,
        strategies=strategy,
        space=space,
        sampler=sampler,
        seed=seed,
        trials=trials,
        budget_s=None if budget is None else parse_seconds(budget),
        workers=workers,
        fresh=fresh,
        warm_start=not no_warm_start,
        warm_files=warm_start,
    )


def _require_no_settings(context: click.Context, words: dict[str, object]) -> None:
    """Raises UsageError for words beside --resume that the stored settings decide."""
    given = settings_given(context, words)
    if words["operation"] is not None or given:
        found = ", ".join(given) or words["operation"]
        raise UsageError(f"--resume: goes on with the run's stored settings, found {found} beside it")


def _print(tuned: "TunedRun", store: "Store", as_json: bool, database_words: str) -> None:
    from tuner.cli.result import failure_lines, result_lines, verified_lines
    from tuner.report import tune_document

    if as_json:
        print_json(tune_document(tuned.run, tuned.counts, tuned.answer, tuned.seconds, tuned.roofline))
    elif tuned.answer is not None:
        print("\n".join(result_lines(tuned, tuned.answer, database_words)))
    elif tuned.has_worked:
        print("\n".join(verified_lines(tuned, _first_verified(store, tuned.run.id), database_words)))
    if tuned.is_interrupted:
        print("interrupted; everything measured is stored. Go on with:", file=sys.stderr)
        print(f"  tuner tune --resume {tuned.run.id}{database_words}", file=sys.stderr)
    elif not tuned.has_worked:
        reasons = _reasons(store, tuned.run.id)
        print("\n".join(failure_lines(tuned, reasons, database_words)), file=sys.stderr)


def _first_verified(store: "Store", run: int) -> int:
    """Returns the first trial of a run that was verified, for the user to begin with."""
    from tuner.runs import TrialQuery

    return store.trials(TrialQuery(run=run, status="verified", sort="number", limit=1))[0].id


def _reasons(store: "Store", run: int) -> list[tuple[str, int]]:
    """Returns the commonest reasons of failure of a run with their counts."""
    from tuner.runs import TrialQuery

    records = [trial.record for trial in store.trials(TrialQuery(run=run, status="failed"))]
    failures = [record.outcome for record in records if record and isinstance(record.outcome, Failure)]
    counted = Counter(f"{failure.stage.value}: {failure.reason}" for failure in failures)
    return counted.most_common(REASONS_SHOWN)


def _database_words(context: click.Context, database: str | None) -> str:
    """Returns the flag that the next command needs as well; a URL may hold a password and is not repeated."""
    from click.core import ParameterSource

    if context.get_parameter_source("database") is not ParameterSource.COMMANDLINE or database is None:
        return ""
    return " --db URL" if "@" in database else f" --db {shlex.quote(database)}"
