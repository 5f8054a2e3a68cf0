"""``tuner ptx``: runs PTX files from any source in the simulator."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.main import DONE, FAILED, Commands
from tuner.cli.options import json_option, print_found, seed_option
from tuner.core.errors import UsageError
from tuner.output.formatting import count_text

if TYPE_CHECKING:
    from tuner.simulator.ptx.defects import Hazard
    from tuner.simulator.ptx.instruction import PtxModule
    from tuner.simulator.ptx.simulation import Simulation

CONFLICTS_SHOWN = 8


@click.group(cls=Commands)
def ptx() -> None:
    """Runs and checks PTX files without a GPU.

    Example: tuner ptx run --help
    """


@ptx.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kernel", metavar="NAME", help="Entry to run. Default: the only one.")
@click.option("--grid", default="1,1,1", show_default=True, metavar="X,Y,Z", help="Blocks.")
@click.option("--block", default="1,1,1", show_default=True, metavar="X,Y,Z", help="Threads of a block.")
@click.option(
    "--arg", "arguments", multiple=True, metavar="TYPE[SIZES]=CONTENT", help="A parameter; repeat in order."
)
@click.option("--shared", type=int, default=0, show_default=True, help="Dynamic shared memory, bytes.")
@click.option("--only", multiple=True, metavar="X,Y,Z", help="Run only this block; may be repeated.")
@seed_option("Of the random arguments.")
@click.option("--schedule-seed", type=int, help="Run threads in a random order of this seed.")
@click.option("--save", type=click.Path(path_type=Path), help="Write the arrays after the run to this .npz.")
@json_option
@click.pass_context
def run(
    context: click.Context,
    file: Path,
    kernel: str | None,
    grid: str,
    block: str,
    arguments: tuple[str, ...],
    shared: int,
    only: tuple[str, ...],
    seed: int,
    schedule_seed: int | None,
    save: Path | None,
    as_json: bool,
) -> None:
    """Simulates a kernel of a PTX file; reports its instructions, shared-memory conflicts and races.

    Exits with 1 when it races or does what has no defined result. Contents of arrays are random, zeros, ones,
    range, nan, a number or @FILE.npy.

    Example: tuner ptx run axpy.ptx --grid 8 --block 128 --arg f32[1024]=random --arg f32[1024]=zeros
    """
    import numpy as np

    from tuner.cli.ptx_arguments import parse_argument, parse_block_index, parse_sizes
    from tuner.simulator.ptx.launch import simulate_module

    module = _module(file)
    rng = np.random.default_rng(seed)
    values = tuple(parse_argument(text, rng) for text in arguments)
    found = simulate_module(
        module,
        kernel or _only_kernel(module),
        parse_sizes(grid, "grid"),
        parse_sizes(block, "block"),
        values,
        shared,
        tuple(parse_block_index(text) for text in only) or None,
        schedule_seed,
    )
    if save is not None:
        arrays = {
            f"arg{number}": value for number, value in enumerate(values) if isinstance(value, np.ndarray)
        }
        np.savez(save, **arrays)  # type: ignore[arg-type] # every key is an array's name
    print_found(as_json, _document(found), *_lines(found))
    context.exit(FAILED if found.races else DONE)


def _module(file: Path) -> "PtxModule":
    """Returns the parsed module of a PTX file. Raises UsageError for a syntax error."""
    from tuner.core.text_file import read_text_or_stdin
    from tuner.simulator.ptx.defects import Defect, SimulationError
    from tuner.simulator.ptx.parse.parser import parse

    try:
        return parse(read_text_or_stdin(file, "PTX text"), file.name)
    except SimulationError as error:
        if error.kind is Defect.SYNTAX:
            raise UsageError(str(error)) from error
        raise


def _only_kernel(module: "PtxModule") -> str:
    names = [kernel.name for kernel in module.kernels]
    if not names:
        raise UsageError(f"{module.name}: has no kernel")
    if len(names) > 1:
        raise UsageError(f"{module.name}: has the kernels {', '.join(names)}", "choose one with --kernel")
    return names[0]


def _document(found: "Simulation") -> dict[str, Any]:
    return {
        "kernel": found.kernel,
        "blocks": found.blocks,
        "instructions": found.instructions,
        "conflict_ratio": found.conflict_ratio,
        "conflicts": [
            {**dataclasses.asdict(conflict), "ratio": conflict.ratio} for conflict in found.conflicts
        ],
        "races": [_hazard(hazard) for hazard in found.races],
        "benign": [_hazard(hazard) for hazard in found.benign],
    }


def _hazard(hazard: "Hazard") -> dict[str, Any]:
    return {**dataclasses.asdict(hazard), "kind": hazard.kind.value}


def _lines(found: "Simulation") -> tuple[str, ...]:
    blocks = count_text(found.blocks, "block")
    worst = sorted((each for each in found.conflicts if each.ratio > 1), key=lambda each: -each.ratio)
    return (
        f"{found.kernel}: {blocks}, {count_text(found.instructions, 'warp instruction')}",
        f"shared memory: {found.conflict_ratio:.2f} times the wavefronts without bank conflicts",
        *(f"  {each.ratio:.2f}  line {each.line}: {each.instruction}" for each in worst[:CONFLICTS_SHOWN]),
        count_text(len(found.races), "race"),
        *(f"  {hazard}" for hazard in (*found.races, *found.benign)),
    )
