"""``tuner tune``: searches for the best schedule of a problem."""

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.commands.tune_on import (
    compromise_lines,
    fleet_of_run,
    followers,
    several_document,
    target_text,
)
from tuner.cli.commands.tune_program import OF_ONE_PROBLEM, is_payload, tune_payload
from tuner.cli.commands.tune_shapes import GroupNumber, RunOrGroup, resume_shapes, tune_shapes
from tuner.cli.fleet_options import fleet_options, popped_fleet
from tuner.cli.main import DONE, FAILED, INTERRUPTED
from tuner.cli.options import (
    composition_of,
    database_option,
    json_option,
    open_known_store,
    open_store,
    popped_problem,
    print_json,
    problem_options,
    run_limit,
    run_request,
    target_options,
    typed_options,
)
from tuner.cli.run_session import require_no_arguments, run_session
from tuner.cli.screen import screen_columns
from tuner.core.errors import Failure, UsageError
from tuner.samplers import OPTUNA, SAMPLERS

if TYPE_CHECKING:
    from tuner.core.pending_trial import PendingTrial
    from tuner.db.store import Store
    from tuner.fleet.driver import FleetRequest
    from tuner.tuning.composition import Composition
    from tuner.tuning.tuned_run import TunedRun

LOOKED_AT = 8  # trials whose machine code the cycle prediction reads at the end of a run: half a second each
REASONS_SHOWN = 3
EXAMPLE_SIZES = "512x512x512"


@click.command()
@click.argument("operation", required=False)
@click.argument("shape", required=False, metavar="[Bx]MxNxK")
@problem_options
@target_options
@click.option(
    "--strategy", "strategies", multiple=True, help="Strategy to try; may be repeated. Default: all that fit."
)
@click.option("--space", type=click.Path(path_type=Path), help="Search space file. Default: the one shipped.")
@click.option(
    "--sampler",
    help=f"How to choose: {', '.join(SAMPLERS)}, or {OPTUNA}NAME, one of Optuna's own. "
    "Default: tpe; random where nothing is timed.",
)
@click.option("--trials", type=int, help="Ends after so many. Default: 100 without --budget.")
@click.option(
    "--budget",
    metavar="TIME",
    help="Ends the search after 60s, 5m or 1h; the final re-measurement comes on top.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds propose equal trials.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--workers", type=int, help="Candidates compiled at once. Default: the cores, at most 4.")
@click.option("--fresh", is_flag=True, help="Measure again what earlier runs have measured.")
@click.option(
    "--no-warm-start",
    "warm_start",
    flag_value=False,
    default=True,
    help="Begin with nothing that was best for other problems.",
)
@click.option(
    "--warm-start",
    "warm_files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Begin with the best of a space that record-space wrote, too; may be repeated.",
)
@click.option(
    "--baseline",
    default="",
    metavar="LIBRARY",
    help="Of a CPU: openblas, mkl, blis, onednn, onednn-torch, or best: the fastest of those installed. "
    "Default: openblas; onednn for bf16 and i8. Of a PyTorch model: all, eager, torch.compile or none. "
    "Default: all.",
)
@fleet_options
@click.option("--entry", metavar="NAME", help="Function of a payload. Default: the only public one.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="N=[SIZES]CONTENT",
    help="An argument of a payload, as for tuner run; others are random.",
)
@click.option(
    "--shapes",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Tune all problems of a file under one budget: .yaml or .csv with shape, count and name, or .mlir.",
)
@click.option(
    "--resume",
    type=RunOrGroup(),
    metavar="RUN",
    help="Continue a run, or group:N of --shapes, by its stored settings, or to another --trials or "
    "--budget.",
)
@click.option(
    "--retime",
    is_flag=True,
    help="With --resume: time the best again. Each round is kept; the quietest one selects the result.",
)
@database_option
@json_option
@click.pass_context
def tune(
    context: click.Context,
    /,
    shapes: Path | None,
    resume: int | None,
    retime: bool,
    database: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Tunes one operation at one size, or each matmul of a program or file; every trial is stored.

    Ctrl-C ends the run without loss; a second one kills at once. A program is a .mlir file: its matmuls are
    tuned one after another, then it runs as a whole. With --shapes, many problems share one budget: those of
    a file, or all contractions of a model.

    Example: tuner tune matmul 512x512x512 --dtype f32 --budget 60s
    """
    from tuner.tuning.settings import run_settings

    composition = composition_of(context)
    fleet = popped_fleet(arguments, database)
    is_group = _is_group(shapes, resume, retime, fleet)
    alone = composition
    if fleet is not None:
        fleet = fleet_of_run(fleet, resume, database)
        composition = _on_fleet(composition, fleet, arguments)
    if is_group:
        parts = (context, composition, database, as_json, fleet is not None)
        context.exit(_tune_group(parts, shapes, resume, arguments))
    if retime and resume is None:
        raise UsageError("--retime needs a run", "--resume RUN")
    if is_payload(arguments["operation"]) and resume is None:
        context.exit(tune_payload(context, composition, database, as_json, **arguments))
    _reject_program_options(context, entry=arguments.pop("entry"), arg=arguments.pop("arguments"))
    if resume is None:
        problem = popped_problem(context, arguments, EXAMPLE_SIZES)
        settings, limit = run_settings(run_request(problem, **arguments), composition), None
    else:
        settings, limit = None, run_limit(arguments.pop("trials"), arguments.pop("budget"))
        require_no_arguments(context, arguments)
    from tuner.output.formatting import wrapped

    opened = open_store if resume is None else open_known_store
    with opened(database) as store:
        tuned = run_session(composition, store, settings, resume, retime, limit)
        all_tuned = (tuned, *(() if fleet is None else followers(alone, fleet, tuned, store)))
        go_on = _resume_text(tuned.run.id, fleet, database)
        if fleet is not None and fleet.on and as_json:
            print_json(several_document(all_tuned, store))
        else:
            for each in all_tuned:
                _print(each, store, as_json, database, go_on)
            if len(all_tuned) > 1:
                print("\n".join(wrapped(compromise_lines(all_tuned, store), screen_columns())))
    if retime and tuned.lost and not tuned.is_interrupted:
        print(f"run {tuned.run.id}: --retime gained no round: {tuned.lost}", file=sys.stderr)
        context.exit(FAILED)
    codes = [
        INTERRUPTED if each.is_interrupted else DONE if each.has_worked else FAILED for each in all_tuned
    ]
    context.exit(max(codes))


def _tune_group(
    parts: "tuple[click.Context, Composition, str | None, bool, bool]",
    shapes: Path | None,
    group: int | None,
    arguments: dict[str, Any],
) -> int:
    """Tunes the problems of a file, or resumes a group; returns the exit code."""
    if shapes is not None:
        return tune_shapes(*parts, shapes, **arguments)
    assert group is not None
    return resume_shapes(*parts, group, **arguments)


def _is_group(shapes: Path | None, resume: int | None, retime: bool, fleet: "FleetRequest | None") -> bool:
    """Returns whether many problems are tuned under one budget: those of a file or of a stored group.

    Raises UsageError for options that a group cannot be combined with.
    """
    if shapes is None and not isinstance(resume, GroupNumber):
        return False
    group = "--shapes" if shapes is not None else f"--resume group:{resume}"
    if shapes is not None and resume is not None:
        raise UsageError("--resume cannot be combined with --shapes: a group has its stored problems")
    if fleet is not None and fleet.on:
        line = f"{group} cannot be combined with --on: a group of runs is measured on one class of machine"
        raise UsageError(line, "tuner tune --shapes FILE --fleet --machine NAME")
    if retime:
        line = f"{group} cannot be combined with --retime, which times one run again"
        raise UsageError(line, "tuner tune --resume RUN --retime")
    return True


def _on_fleet(composition: "Composition", fleet: "FleetRequest", arguments: dict[str, Any]) -> "Composition":
    """Returns the composition whose work nodes of a fleet do; with --on, sets the target in ``arguments``.

    Raises UsageError for a program, which runs on this machine.
    """
    from tuner.fleet.kind import fleet_composition

    operation = arguments["operation"]
    if is_payload(operation):
        raise UsageError(f"--fleet cannot be combined with {operation}: programs run on this machine")
    if operation is not None and fleet.on:
        arguments["target"] = target_text(fleet, arguments["target"])
    return fleet_composition(composition, fleet)


def _resume_text(run: int, fleet: "FleetRequest | None", database: str | None) -> str:
    """Returns the command that resumes an interrupted run."""
    from tuner.run_history.which_database import database_text

    on_fleet = " --fleet" if fleet is not None else ""
    on = f" --on {shlex.quote(','.join(fleet.on))}" if fleet is not None and fleet.on else ""
    return f"tuner tune --resume {run}{on_fleet}{on}{database_text(database)}"


def _reject_program_options(context: click.Context, **arguments: object) -> None:
    for name, found in arguments.items():
        if found:
            line = f"--{name} needs a program: a file of MLIR in place of an operation and a shape"
            options = typed_options(context, (*OF_ONE_PROBLEM, "threads"))
            raise UsageError(line, f"tuner tune payload.mlir{options}")


def _print(tuned: "TunedRun", store: "Store", as_json: bool, database: str | None, go_on: str) -> None:
    from tuner.output.formatting import wrapped
    from tuner.output.json_documents import tune_document
    from tuner.output.result import failure_lines, other_cache_lines, result_lines, verified_lines
    from tuner.run_history.other_caches import other_winners
    from tuner.run_history.which_database import database_text

    arguments = database_text(database)
    if as_json:
        print_json(tune_document(tuned.run, tuned.counts, tuned.selected, tuned.seconds))
    elif tuned.selected is not None:
        others = other_winners(store, tuned.selected.best)
        lines = result_lines(tuned, tuned.selected, arguments) + other_cache_lines(others)
        print("\n".join(wrapped(lines)))
    elif tuned.has_worked:
        from tuner.bundle.static_ranking import deciding_facts

        promising = _promising(store, tuned.run.id)
        facts = deciding_facts(promising[0]) if promising else ""
        print("\n".join(wrapped(verified_lines(tuned, promising, arguments, facts))))
    if tuned.is_interrupted:
        print("interrupted; everything measured is stored. Go on with:", file=sys.stderr)
        print(f"  {go_on}", file=sys.stderr)
    elif not tuned.has_worked:
        reasons = _reasons(store, tuned.run.id)
        print("\n".join(failure_lines(tuned, reasons, arguments)), file=sys.stderr)


def _promising(store: "Store", run: int) -> "tuple[PendingTrial, ...]":
    """Returns the trials of a run that still need a measurement on a GPU, the most promising first."""
    from tuner.bundle.predicted_order import predicted_first
    from tuner.core.runs import TrialQuery

    return predicted_first(store.pending(TrialQuery(run=run)), LOOKED_AT)


def _reasons(store: "Store", run: int) -> list[tuple[str, int]]:
    """Returns the most frequent reasons of failed trials of a run, with their counts."""
    from tuner.core.runs import TrialQuery

    outcomes = [trial.record.outcome for trial in store.trials(TrialQuery(run=run, status="failed"))]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    counted = Counter(f"{failure.stage.value}: {failure.reason}" for failure in failures)
    return counted.most_common(REASONS_SHOWN)
