"""``tuner lower``: prints the IR of a program after one of tuner's lowering steps."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.options import composition_of, json_option, print_json
from tuner.core.errors import UsageError
from tuner.programs.lower.lowering_steps import STEPS, WITH_FORM

if TYPE_CHECKING:
    from tuner.programs.lower.device_options import Form
    from tuner.programs.lower.lowering_steps import LoweringStep

LOWERING_TARGET = "simulator"  # compiles for every chip and needs no GPU
LOWER_TIMEOUT_S = 600.0


@click.command()
@click.argument("payload", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--to", "step", required=True, type=click.Choice(STEPS), help="The last step.")
@click.option("--entry", metavar="NAME", help="Function to lower. Default: main, or the only public one.")
@click.option("--form", help="streams (default), tokens or sync, of --to llvm and --to ptx.")
@click.option("--chip", default="", metavar="CHIP", help="sm_90 (default), sm_80, ...")
@click.option("--pinned", is_flag=True, help="Page-lock the host memory that is copied.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")
@json_option
@click.pass_context
def lower(
    context: click.Context,
    payload: Path,
    step: "LoweringStep",
    entry: str | None,
    form: "Form | None",
    chip: str,
    pinned: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Prints an MLIR program after one step of its lowering for a GPU; '-' reads the program from stdin.

    Steps: device-memory: kernels, device memory and copies; async: with tokens; streams: with streams and
    events; gpux: with one stream in the GPUX dialect, which 'tuner run' reads; llvm: the host's code; ptx:
    the code of the kernels.

    Example: tuner lower examples/two_matmuls.mlir --to device-memory
    """
    from tuner.core.text_file import read_text_or_stdin
    from tuner.output.atomic_write import write_atomically
    from tuner.programs.lower.device_options import DeviceOptions
    from tuner.programs.options import ProgramOptions
    from tuner.programs.positions import named_in_errors
    from tuner.programs.request import ProgramRequest
    from tuner.programs.service import lower_in_child
    from tuner.tuning.target_choice import named_target

    if form is not None and step not in WITH_FORM:
        raise UsageError(f"--form cannot be combined with --to {step}, only with {', '.join(WITH_FORM)}")
    options = ProgramOptions(DeviceOptions(form or "streams", pinned=pinned))
    text = read_text_or_stdin(payload, "MLIR text")
    target = named_target(LOWERING_TARGET, composition_of(context), chip)
    with named_in_errors(str(payload), text):
        made = lower_in_child(ProgramRequest(text, target, entry, options), step, LOWER_TIMEOUT_S)
    content = made.text.rstrip("\n") + "\n"
    if output is not None:
        write_atomically(output, content.encode())
    if as_json:
        document = {"entry": made.entry, "chip": made.chip, "to": step}
        print_json(document | ({"text": content} if output is None else {"file": str(output)}))
    elif output is None:
        print(content, end="")
