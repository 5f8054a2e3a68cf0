"""``tuner run``: reads what runs a whole MLIR function; ``ran`` does the work."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import named_target
from tuner.cli.options import (
    backends_of,
    database_option,
    json_option,
    math_option,
    shown_choices,
    target_options,
)
from tuner.core.device_programs import FORMS, DeviceOptions
from tuner.core.dtypes import IEEE
from tuner.core.dynamic_sizes import SizeRange
from tuner.core.errors import UsageError
from tuner.models.commands.payload_text import read_payload_text
from tuner.models.request import ProgramOptions, ProgramRequest, program_support
from tuner.targets.backends import resolve_target

if TYPE_CHECKING:
    from tuner.core.device_programs import Form

FORM = shown_choices(FORMS)


@click.command()
@click.argument("payload", type=click.Path(path_type=Path, allow_dash=True))
@target_options
@click.option("--entry", metavar="NAME", help="Function to run. Default: main, or the only public one.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="N=[SIZES]CONTENT",
    help="An argument, such as 0=[64,64]zeros; others are random.",
)
@click.option("--form", default="streams", show_default=True, metavar=FORM, help="How async work is ordered.")
@click.option(
    "--order", default="fifo", show_default=True, metavar="[fifo|lifo|random]", help="Of the simulator."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of random arguments and order.")
@click.option("--threads", type=int, default=1, show_default=True, help="Of fusions on the CPU.")
@math_option("How a GPU's matmuls of f32 multiply.", default=IEEE)
@click.option("--pinned", is_flag=True, help="Page-lock the host memory that is copied.")
@click.option("--trace", is_flag=True, help="Print what the program asks of the device, one line per call.")
@click.option("--explain", "is_explained", is_flag=True, help="On the CPU: list the fusions, time each.")
@click.option(
    "--sizes",
    metavar="A..B",
    help="Range of the dynamic size n of a program, and after a comma of m; some sizes are run and compared.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Compare with the payload as written; by default only a small program with its own schedule is.",
)
@click.option(
    "--sample",
    type=int,
    default=0,
    metavar="N",
    help="Simulate about N blocks of each launch, 9 or more; a reference does the rest.  [default: all]",
)
@database_option
@json_option
@click.pass_context
def run(
    context: click.Context,
    /,
    payload: Path,
    as_json: bool,
    sizes: str | None,
    database: str | None,
    **options: Any,
) -> None:
    """Compiles and runs an MLIR program of one or more operations; '-' reads the program from stdin.

    A PyTorch model is a program, too: MODEL.py:FUNCTION, where the function returns (module, inputs), or a
    MODEL.pt2 of torch.export.

    Exits with 1 when results differ, or the simulator finds a defect: work that nothing orders, a leak or the
    like. Contents of arrays are random, range, zeros, ones, nan, a number or @FILE.npy.

    Example: tuner run examples/two_matmuls.mlir --target simulator --trace --compare
    """
    program = read_payload_text(payload)
    request = replace(_request(context, program.text, **options), written=program.written)
    size_range = None if sizes is None else SizeRange.parse(sizes)
    from tuner.models.commands.ran import run_program  # loads MLIR and the database: the options are right

    context.exit(run_program(payload, request, size_range, database, as_json=as_json))


def _request(
    context: click.Context,
    text: str,
    target: str,
    cpu: str,
    chip: str,
    entry: str | None,
    arguments: tuple[str, ...],
    form: "Form",
    pinned: bool,
    compare: bool,
    is_explained: bool,
    **program_options: Any,
) -> ProgramRequest:
    options = ProgramOptions(DeviceOptions(form, pinned=pinned), **program_options)
    resolved = resolve_target(named_target(target, cpu), backends_of(context), chip)
    options.require_suiting(resolved, backends_of(context))
    if compare and options.sample:
        raise UsageError("--compare cannot be combined with --sample: sampled blocks are compared already")
    if is_explained and program_support(resolved, backends_of(context)).has_device:
        raise UsageError(f"--explain cannot be combined with target {resolved}, only with cpu")
    return ProgramRequest(
        text,
        resolved,
        entry,
        options,
        arguments=arguments,
        is_compared=compare,
        is_explained=is_explained,
    )
