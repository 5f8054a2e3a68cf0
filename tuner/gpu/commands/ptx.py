"""``tuner ptx``: runs PTX files from any source in the simulator, on arguments given as text."""

import dataclasses
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from tuner.cli.main import DONE, FAILED
from tuner.cli.options import json_option, print_found, seed_option
from tuner.core.errors import UsageError, unknown_value
from tuner.core.serialization import count_text
from tuner.core.text_files import read_text_or_stdin
from tuner.gpu.ptxsim.launch import simulate
from tuner.gpu.ptxsim.ptx.defects import Defect, SimulationError
from tuner.gpu.ptxsim.ptx.parser import parse
from tuner.runtime.arrays import read_npy

if TYPE_CHECKING:
    from tuner.gpu.ptxsim.launch import Simulation
    from tuner.gpu.ptxsim.ptx.defects import Hazard
    from tuner.gpu.ptxsim.ptx.syntax_tree import PtxModule


CONFLICTS_SHOWN = 8
MLIR_TEXT = re.compile(r"^\s*(?:module|func\.func|gpu\.module)\b", re.MULTILINE)
LOWER = "tuner lower {} --to ptx"  # prints the PTX of a program's kernels
BYTES_LIMIT = 4 << 30  # largest size of one argument
FILLS = "random, zeros, ones, range, nan, a number or @FILE.npy"
EXAMPLE = "such as f32[64,64]=random, f32[64]=@bias.npy or u32=7"
NUMPY_NAMES = {f"f{8 * size}": f"f{size}" for size in (2, 4, 8)} | {
    f"{kind}{8 * size}": f"{'i' if kind == 's' else 'u'}{size}" for kind in "su" for size in (1, 2, 4, 8)
}


@click.command()
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
def ptx(
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

    Example: tuner ptx axpy.ptx --grid 8 --block 128 --arg f32[1024]=random --arg f32[1024]=zeros
    """
    text = read_text_or_stdin(file, "PTX text")
    try:
        module = parse(text, file.name)
    except SimulationError as error:
        if error.kind is Defect.SYNTAX:
            raise UsageError(str(error), LOWER.format(file) if MLIR_TEXT.search(text) else "") from error
        raise
    rng = np.random.default_rng(seed)
    values = tuple(parse_argument(text, rng) for text in arguments)
    simulated = simulate(
        module,
        kernel or _only_kernel(module),
        parse_sizes(grid, "grid"),
        parse_sizes(block, "block"),
        values,
        shared,
        tuple(parse_sizes(text + ",0" * (2 - text.count(",")), "only") for text in only) or None,
        schedule_seed,
    )
    if save is not None:
        named = ((f"arg{index}", value) for index, value in enumerate(values))
        arrays = {name: value for name, value in named if isinstance(value, np.ndarray)}
        np.savez(save, **arrays)  # type: ignore[arg-type] # every key is an array's name
    print_found(as_json, _document(simulated), *_lines(simulated))
    context.exit(FAILED if simulated.races else DONE)


def _only_kernel(module: "PtxModule") -> str:
    names = [kernel.name for kernel in module.kernels]
    if not names:
        raise UsageError(f"{module.name}: has no kernel")
    if len(names) > 1:
        raise UsageError(f"{module.name}: has the kernels {', '.join(names)}", "choose one with --kernel")
    return names[0]


def _document(simulation: "Simulation") -> dict[str, Any]:
    return {
        "kernel": simulation.kernel,
        "blocks": simulation.blocks,
        "instructions": simulation.instructions,
        "conflict_ratio": simulation.conflict_ratio,
        "conflicts": [
            {**dataclasses.asdict(conflict), "ratio": conflict.ratio} for conflict in simulation.conflicts
        ],
        "races": list(map(_hazard, simulation.races)),
        "benign": list(map(_hazard, simulation.benign)),
    }


def _hazard(hazard: "Hazard") -> dict[str, Any]:
    return {**dataclasses.asdict(hazard), "kind": hazard.kind.value}


def _lines(simulation: "Simulation") -> tuple[str, ...]:
    blocks = count_text(simulation.blocks, "block")
    worst = sorted(
        (conflict for conflict in simulation.conflicts if conflict.ratio > 1),
        key=lambda conflict: -conflict.ratio,
    )
    return (
        f"{simulation.kernel}: {blocks}, {count_text(simulation.instructions, 'warp instruction')}",
        f"shared memory: {simulation.conflict_ratio:.2f} times the wavefronts without bank conflicts",
        *(
            f"  {conflict.ratio:.2f}  line {conflict.line}: {conflict.instruction}"
            for conflict in worst[:CONFLICTS_SHOWN]
        ),
        count_text(len(simulation.races), "race"),
        *(f"  {hazard}" for hazard in (*simulation.races, *simulation.benign)),
    )


def parse_argument(text: str, rng: np.random.Generator) -> NDArray[Any] | int | float:
    """Returns the kernel argument that a text describes: an array (``f32[64]=random``) or number (``u32=7``).

    ``rng``: source of random numbers. Raises UsageError for a text of another form, for an array of more than
    4 GiB and for a file that cannot be read.
    """
    match = re.fullmatch(r"(\w+)(?:\[([0-9]{1,9}(?:,[0-9]{1,9})*)\])?=(.+)", text)
    if match is None:
        raise UsageError(f"argument: found {text!r}, allowed TYPE[SIZES]=CONTENT, {EXAMPLE}")
    dtype = _dtype(match[1])
    if match[2] is None:
        return _number(match[3], dtype)
    sizes = tuple(map(int, match[2].split(",")))
    if math.prod(sizes) * dtype.itemsize > BYTES_LIMIT:
        raise UsageError(f"argument: found {text!r}, allowed up to {BYTES_LIMIT >> 30} GiB")
    return _array(match[3], dtype, sizes, rng)


def _dtype(name: str) -> "np.dtype[Any]":
    if name == "bf16":
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    if name not in NUMPY_NAMES:
        raise unknown_value("argument: type", name, (*NUMPY_NAMES, "bf16"))
    return np.dtype(NUMPY_NAMES[name])


def _number(text: str, dtype: "np.dtype[Any]") -> int | float:
    try:
        if dtype.kind not in "iu":
            return float(text)
        return int(text, 0)
    except ValueError:
        line = f"argument: found {text!r}, allowed a number; arrays have sizes, {EXAMPLE}"
        raise UsageError(line) from None


def _array(
    fill: str, dtype: "np.dtype[Any]", sizes: tuple[int, ...], rng: np.random.Generator
) -> NDArray[Any]:
    if fill.startswith("@"):
        return _from_file(Path(fill[1:]), dtype, sizes)
    is_integer = dtype.kind in "iu"
    if fill == "nan" and is_integer:
        raise UsageError(f"argument: {dtype} has no nan")
    if fill == "random":
        drawn = rng.integers(0, 100, sizes) if is_integer else rng.standard_normal(sizes, np.float32)
        return np.asarray(drawn).astype(dtype)
    if fill == "range":
        return np.arange(math.prod(sizes)).reshape(sizes).astype(dtype)
    named = {"zeros": 0, "ones": 1, "nan": float("nan")}
    if fill not in named and not re.fullmatch(r"-?[\d.]+(?:e-?\d+)?|0x[0-9a-fA-F]+", fill):
        raise UsageError(f"argument: content: found {fill!r}, allowed {FILLS}")
    number = named[fill] if fill in named else _number(fill, dtype)
    if is_integer and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        raise UsageError(f"argument: content: found {fill}, allowed numbers of {dtype}")
    return np.full(sizes, number).astype(dtype)


def _from_file(path: Path, dtype: "np.dtype[Any]", sizes: tuple[int, ...]) -> NDArray[Any]:
    array = read_npy(path, f"{path}")
    if array.size != math.prod(sizes):
        raise UsageError(f"{path}: found {array.size} elements, allowed {math.prod(sizes)}")
    is_opaque = array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize  # bf16, as numpy writes it
    if not is_opaque and array.dtype.kind not in "biuf":
        raise UsageError(f"{path}: found {array.dtype}, allowed numbers")
    same = array.view(dtype) if is_opaque else array.astype(dtype)
    return np.array(same.reshape(sizes), order="C")


def parse_sizes(text: str, what: str) -> tuple[int, int, int]:
    """Returns the sizes (x, y, z) from ``x,y,z``, ``x,y`` or ``x``; sizes that are left out are 1.

    Raises UsageError for other texts; ``what`` is the option's name in its message.
    """
    if re.fullmatch(r"[0-9]{1,9}(?:,[0-9]{1,9}){0,2}", text) is None:
        raise UsageError(f"{what}: found {text!r}, allowed x,y,z such as 8,8,1")
    x, y, z = (*map(int, text.split(",")), 1, 1)[:3]
    return x, y, z
