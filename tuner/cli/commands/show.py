"""``tuner show``, ``diff`` and ``explain``: one run, trial or campaign; two trials; one configuration."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import ProblemOptions, read_options
from tuner.cli.options import (
    CAMPAIGN_PREFIX,
    database_option,
    json_option,
    open_known_store,
    parse_candidate,
    parse_number,
    problem_options,
    space_option,
    target_options,
)
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.core.requests import Campaign
    from tuner.core.runs import Run
    from tuner.core.trials import StoredTrial
    from tuner.db.store import Store

RUN_PREFIX = "run:"
STAGES = ("script", "payload", "loops", "kernels", "nvvm", "code", "assembly")


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--show",
    "shown",
    multiple=True,
    type=click.Choice((*STAGES, "first", "none")),
    help="Print what differs after these stages, line by line; may be repeated. Default: first.",
)
@database_option
@json_option
@click.pass_context
def diff(
    context: click.Context,
    first: str,
    second: str,
    shown: tuple[str, ...],
    database: str | None,
    as_json: bool,
) -> None:
    """Compares two trials, or the best trials of two runs: knobs, time, text of each stage, instructions.

    Stages of --show: script: the bound transform script; payload: the IR after the script; on a CPU then
    loops, and code in the LLVM dialect; on a GPU then kernels (outlined), nvvm (the LLVM dialect for GPUs),
    and code in PTX; assembly: the machine code, where objdump or nvdisasm is installed; first: the first
    stage that differs. Instructions are counted in the assembly if both trials have it, else in the code.

    Example: tuner diff 41 42 --show payload, or tuner diff run:3 run:4
    """
    ours = _trial_or_run(first)
    theirs = _trial_or_run(second)
    with open_known_store(database) as store:
        compared = (_stored(store, *ours), _stored(store, *theirs))
        from tuner.cli.shown import show_difference  # not before both are found: takes long to load

        show_difference(context, store, *compared, shown, as_json)


@click.command()
@click.argument("trial_or_run", required=False, metavar="[ID|run:ID|campaign:ID]")
@click.option("--run", type=int, help="Show this run.")
@click.option(
    "--ablation", is_flag=True, help="Show what each knob and strategy gave a run; a number is a run then."
)
@click.option(
    "--passes", is_flag=True, help="Show the seconds of each compiler pass; timed once, then stored."
)
@database_option
@json_option
@click.pass_context
def show(
    context: click.Context,
    trial_or_run: str | None,
    run: int | None,
    ablation: bool,
    passes: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Shows what is stored about one trial, one run, or one campaign, with the program that it tuned.

    Example: tuner show 42, or tuner show run:3, or tuner show run:3 --ablation, or tuner show campaign:1
    """
    noun, number = _subject(trial_or_run, run, ablation=ablation, passes=passes)
    with open_known_store(database) as store:
        found = _stored(store, noun, number)
        from tuner.cli.shown import show_stored  # not before it is found: takes long to load

        show_stored(context, store, found, database, ablation=ablation, passes=passes, as_json=as_json)


@click.command()
@click.argument("arguments", nargs=-1, required=True, metavar="ID | matmul MxNxK 'STRATEGY(KNOB=VALUE, ...)'")
@problem_options
@target_options
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option(
    "--strategy", "strategies", multiple=True, help="Where it is a file of your own; may be repeated."
)
@space_option
@database_option
@json_option
@click.pass_context
def explain(
    context: click.Context,
    /,
    arguments: tuple[str, ...],
    database: str | None,
    as_json: bool,
    **_options: Any,
) -> None:
    """Explains why a trial failed, or whether a configuration is feasible and which constraint rejects it.

    Example: tuner explain 42, or tuner explain matmul 64x64x64 'matmul_cpu_packed(tile_m=4, tile_n=16)'
    """
    if len(arguments) == 1:
        number = parse_number(arguments[0])
        with open_known_store(database) as store:
            trial = store.trial(number)
        from tuner.cli.shown import show_failure  # not before the trial is found: takes long to load

        show_failure(context, trial, database, as_json=as_json)
        return
    if len(arguments) != 3:
        raise UsageError(
            f"explain: found {len(arguments)} arguments, allowed 1 or 3",
            "give a trial's ID, or an operation, a shape and 'STRATEGY(KNOB=VALUE, ...)'",
        )
    candidate = parse_candidate(arguments[2])
    options = replace(read_options(ProblemOptions, context), operation=arguments[0], shape=arguments[1])
    problem = options.problem
    from tuner.cli.shown import show_feasibility  # not before the problem is one: takes long to load

    show_feasibility(context, problem, candidate, as_json=as_json)


def _trial_or_run(text: str) -> tuple[str, int]:
    """Returns what a text names, "trial" or "run", and its number."""
    noun = "run" if text.startswith(RUN_PREFIX) else "trial"
    return noun, parse_number(text.removeprefix(RUN_PREFIX), noun)


def _subject(trial_or_run: str | None, run: int | None, *, ablation: bool, passes: bool) -> tuple[str, int]:
    """Returns what ``tuner show`` is asked for, "trial", "run" or "campaign", and its number.

    Raises UsageError for options that do not fit.
    """
    if trial_or_run is not None and trial_or_run.startswith(CAMPAIGN_PREFIX):
        if run is not None or ablation or passes:
            raise UsageError(f"{trial_or_run} cannot be combined with --run, --ablation or --passes")
        return "campaign", parse_number(trial_or_run.removeprefix(CAMPAIGN_PREFIX), "campaign")
    if trial_or_run is not None and run is None:
        noun, number = _trial_or_run(trial_or_run)
    elif trial_or_run is None and run is not None:
        noun = "run"
        number = run
    else:
        raise UsageError("show: give one of: a trial ID (42), run:3, campaign:1, --run 3")
    if passes and (noun == "run" or ablation):
        raise UsageError("--passes needs a trial's ID and cannot be combined with --ablation")
    return "run" if ablation else noun, number


def _stored(store: "Store", noun: str, number: int) -> "StoredTrial | Run | Campaign":
    """Returns a stored trial, run or campaign. Raises UsageError where there is none of that number."""
    match noun:
        case "campaign":
            return store.campaign(number)
        case "run":
            return store.run(number)
        case _:
            return store.trial(number)
