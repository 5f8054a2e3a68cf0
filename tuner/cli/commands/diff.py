"""``tuner diff``: compares two trials."""

from typing import TYPE_CHECKING

import click

from tuner.cli.options import (
    composition_of,
    database_option,
    json_option,
    open_known_store,
    parse_number,
    print_found,
)
from tuner.cli.screen import screen_columns
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.core.runs import StoredTrial
    from tuner.db.store import Store

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
    from tuner.output.trial_difference import FIRST, difference_document, difference_lines
    from tuner.run_history.trial_difference import trial_difference
    from tuner.run_history.trial_stages import trial_stages

    composition = composition_of(context)
    with open_known_store(database) as store:
        ours, theirs = _trial(store, first), _trial(store, second)
        run = store.run(theirs.run)
        our_stages, their_stages = (
            tuple(trial_stages(composition, store, trial)) for trial in (ours, theirs)
        )
    found = trial_difference(run, ours, theirs, our_stages, their_stages)
    lines = difference_lines(found, shown or (FIRST,), screen_columns())
    print_found(as_json, difference_document(found), *lines)


def _trial(store: "Store", text: str) -> "StoredTrial":
    """Returns the trial with this ID or, for run:ID, the run's best trial. Raises UsageError without one."""
    from tuner.tuning.tuned_run import tuned_run

    if not text.startswith("run:"):
        return store.trial(parse_number(text))
    number = parse_number(text.removeprefix("run:"), "run")
    best = tuned_run(store, number).best
    if best is None:
        line = f"run {number}: has no successful trial"
        raise UsageError(line, f"tuner history --run {number}")
    return best
