"""``tuner show``, ``diff`` and ``explain``: one run, trial or campaign; two trials; one configuration."""

from typing import Any

import click

from tuner.cli.options import database_option, json_option, problem_options, space_option, target_options

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
def diff(context: click.Context, /, **arguments: Any) -> None:
    """Compares two trials, or the best trials of two runs: knobs, time, text of each stage, instructions.

    Stages of --show: script: the bound transform script; payload: the IR after the script; on a CPU then
    loops, and code in the LLVM dialect; on a GPU then kernels (outlined), nvvm (the LLVM dialect for GPUs),
    and code in PTX; assembly: the machine code, where objdump or nvdisasm is installed; first: the first
    stage that differs. Instructions are counted in the assembly if both trials have it, else in the code.

    Example: tuner diff 41 42 --show payload, or tuner diff run:3 run:4
    """
    from tuner.cli.shown import show_difference  # not at start-up

    show_difference(context, **arguments)


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
def show(context: click.Context, /, **arguments: Any) -> None:
    """Shows what is stored about one trial, one run, or one campaign, with the program that it tuned.

    Example: tuner show 42, or tuner show run:3, or tuner show run:3 --ablation, or tuner show campaign:1
    """
    from tuner.cli.shown import show_stored  # not at start-up

    show_stored(context, **arguments)


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
def explain(context: click.Context, /, **arguments: Any) -> None:
    """Explains why a trial failed, or whether a configuration is feasible and which constraint rejects it.

    Example: tuner explain 42, or tuner explain matmul 64x64x64 'matmul_cpu_packed(tile_m=4, tile_n=16)'
    """
    from tuner.cli.shown import show_explanation  # not at start-up

    show_explanation(context, **arguments)
