"""``tuner strategies``, ``space`` and ``targets``: what there is to try, and where."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.options import (
    composition_of,
    debug_option,
    json_option,
    print_json,
    problem_of,
    problem_options,
    target_options,
)

if TYPE_CHECKING:
    from tuner.problem import Problem
    from tuner.tuning.composition import Composition, Plan

space_option = click.option(
    "--space", type=click.Path(path_type=Path), help="Search space file. Default: the one shipped."
)


@click.command()
@space_option
@json_option
@debug_option
def strategies(space: Path | None, as_json: bool) -> None:
    """Lists the strategies with what they can do and their knobs.

    Example: tuner strategies --json
    """
    from tuner.config import default_space_file, load_space_file

    entries = load_space_file(space or default_space_file()).strategies
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "description": entry.description,
                    "ops": list(entry.operations),
                    "dtypes": list(entry.dtypes),
                    "layouts": list(entry.layouts),
                    "epilogues": list(entry.epilogues),
                    "isas": list(entry.isas),
                    "knobs": [knob.name for knob in entry.knobs],
                    "constraints": [constraint.text for constraint in entry.constraints],
                }
                for entry in entries
            ]
        )
        return
    for entry in entries:
        print(f"{entry.name}: {entry.description}" if entry.description else entry.name)
        print(
            f"  for    {', '.join(entry.operations)}: {', '.join(entry.dtypes)}; {', '.join(entry.layouts)}"
        )
        print(f"  needs  {' or '.join(entry.isas)}")
        print(f"  knobs  {', '.join(knob.name for knob in entry.knobs)}")


@click.command()
@click.argument("operation")
@click.argument("shape", metavar="MxNxK")
@problem_options
@click.option("--strategy", multiple=True, help="Only this strategy; may be repeated.")
@target_options
@click.option("--threads", type=int, default=1, show_default=True)
@space_option
@json_option
@debug_option
@click.pass_context
def space(
    context: click.Context,
    operation: str,
    shape: str,
    dtype: str,
    layout: str,
    epilogue: str,
    output_dtype: str,
    strategy: tuple[str, ...],
    target: str,
    chip: str,
    threads: int,
    space: Path | None,
    as_json: bool,
) -> None:
    """Tells how many combinations of knobs are feasible, and which constraints reject the others.

    Example: tuner space matmul 512x512x512 --dtype f32
    """
    problem = problem_of(operation, shape, dtype, layout, epilogue, output_dtype)
    feasible = plan_of(composition_of(context), problem, threads, strategy, space, target, chip).feasible
    rejected = feasible.rejected()
    if as_json:
        document = {"cartesian": feasible.cartesian, "feasible": feasible.rows, "rejected": rejected}
        print_json({**document, "is_estimate": feasible.is_estimate})
        return
    print(f"{problem.key}: {feasible.rows} of {feasible.cartesian} combinations are feasible")
    for constraint, count in sorted(rejected.items(), key=lambda pair: -pair[1]):
        about = "about " if feasible.is_estimate else ""
        print(f"  {about}{count} rejected by {constraint}")


@click.command()
@json_option
@debug_option
@click.pass_context
def targets(context: click.Context, as_json: bool) -> None:
    """Tells what this machine can compile for and run on, and why not.

    Example: tuner targets
    """
    known = composition_of(context).targets()
    if as_json:
        print_json(
            [
                {"name": status.name, "available": status.is_available, "reason": status.reason}
                for status in known
            ]
        )
        return
    for status in known:
        print(f"{status.name}: {'available' if status.is_available else 'not available'}: {status.reason}")


def plan_of(
    composition: "Composition",
    problem: "Problem",
    threads: int,
    strategies: tuple[str, ...],
    space: Path | None,
    target: str = "auto",
    chip: str = "",
) -> "Plan":
    """Returns what a run with these words would try."""
    from tuner.api import run_settings

    settings = run_settings(
        problem,
        composition,
        threads=threads,
        strategies=strategies,
        space=space,
        target=target,
        chip=chip,
    )
    return composition.plan(settings, composition.target_machine(settings.target))
