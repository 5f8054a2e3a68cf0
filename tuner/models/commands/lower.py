"""``tuner lower``: the IR of a program after one step of its lowering, or of an operation after each."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import ProblemOptions, read_options
from tuner.cli.options import (
    PROBLEM_OPTIONS,
    backends_of,
    database_option,
    json_option,
    open_known_store,
    parse_number,
    problem_options,
    shown_choices,
    space_option,
    target_options,
)
from tuner.cli.session import settings_given
from tuner.core.device_programs import FORMS, STEPS, WITH_FORM, DeviceOptions
from tuner.core.errors import UsageError
from tuner.core.problem import OPERATIONS
from tuner.models.commands.payload_text import read_payload_text, require_kind_of_payload
from tuner.models.request import ProgramOptions, ProgramRequest
from tuner.results.script_stages import ASSEMBLY, SCRIPT_STAGES
from tuner.targets.backends import named_target

if TYPE_CHECKING:
    from tuner.core.device_programs import Form, LoweringStep
    from tuner.core.problem import Problem
    from tuner.core.trials import StoredTrial

LOWERING_TARGET = "simulator"  # compiles for every chip and needs no GPU
FORM = shown_choices(FORMS)
EXAMPLE_SIZES = "64x64x64"
OF_PROGRAM = ("entry", "form", "pinned")
MATH = "math"  # the option of a problem that programs have too
OF_RUN = ("target", "cpu", "strategies", "threads", "space")  # a trial has its own
OF_OPERATION = (*(name for name in PROBLEM_OPTIONS if name != MATH), *OF_RUN, "trial")
OF_UNTUNED = (*PROBLEM_OPTIONS, *OF_RUN, "chip")


@click.command()
@click.argument("operation", required=False, metavar="PAYLOAD | OPERATION")
@click.argument("shape", required=False, metavar="[[Bx]MxNxK]")
@click.option(
    "--to",
    "step",
    metavar="STEP",
    help="The last step, of those above. Needed for a program; of an operation, default: all are printed.",
)
@click.option("--trial", metavar="ID", help="Print the stages of this trial.")
@problem_options
@target_options
@click.option("--strategy", "strategies", multiple=True, help="Only this strategy; may be repeated.")
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@space_option
@click.option("--entry", metavar="NAME", help="Function to lower. Default: main, or the only public one.")
@click.option("--form", metavar=FORM, help="Of a program, --to llvm and --to ptx. Default: streams.")
@click.option("--pinned", is_flag=True, help="Page-lock the host memory that is copied.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file.")
@database_option
@json_option
@click.pass_context
def lower(
    context: click.Context,
    /,
    operation: str | None,
    shape: str | None,
    step: str | None,
    trial: str | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Prints an MLIR program, or an operation with its script, after a step of its lowering; - is stdin.

    Of a program, for a GPU, with the database's tuned kernels: device-memory: kernels, device memory and
    copies; async: with tokens; streams: with streams and events; gpux: with one stream in the GPUX dialect,
    which 'tuner run' reads; llvm: the host's code; ptx: the code of the kernels.

    Of an operation, with the configuration that is used untuned, or of a trial: source: what the script is
    given; script; payload: after the script; on a CPU then loops; on a GPU kernels and nvvm; code: LLVM
    dialect, or PTX; assembly: machine code, where objdump or nvdisasm is installed.

    Example: tuner lower examples/two_matmuls.mlir --to device-memory, or tuner lower matmul 64x64x64 --to
    payload
    """
    if operation is None and trial is None:
        raise UsageError(
            "lower: the program or the operation is missing", f"tuner lower matmul {EXAMPLE_SIZES}"
        )
    if trial is None and shape is None and operation not in OPERATIONS:
        assert operation is not None
        _refuse(context, OF_OPERATION, f"a program, {operation}")
        names = ("entry", "form", "chip", "pinned", MATH)
        request, last = _program(context, Path(operation), step, *(options[name] for name in names))
        from tuner.models.commands.lowered import print_program  # loads MLIR: the options are right

        print_program(Path(operation), request, last, options["database"], output, as_json=as_json)
        return
    _refuse(context, OF_PROGRAM, f"a trial, {trial}" if trial else f"an operation, {operation}")
    last_stage = _checked(step, SCRIPT_STAGES, ASSEMBLY)
    subject: Problem | StoredTrial
    if trial is None:
        subject = read_options(ProblemOptions, context).required_problem(context, EXAMPLE_SIZES)
    elif operation is None:
        _refuse(context, OF_UNTUNED, f"a trial, {trial}")
        subject = _stored(trial, options["database"])
    else:
        raise UsageError(f"--trial cannot be combined with {operation}: a trial has its operation")
    from tuner.models.commands.lowered import print_stages  # loads MLIR: the options are right

    print_stages(context, subject, step, last_stage, output, as_json=as_json)


def _program(
    context: click.Context,
    payload: Path,
    step: str | None,
    entry: str | None,
    form: "Form | None",
    chip: str,
    pinned: bool,
    math: str,
) -> "tuple[ProgramRequest, LoweringStep]":
    """Returns the request to lower a program, and the last step. Raises UsageError for wrong options."""
    require_kind_of_payload(payload)
    if step is None:
        raise UsageError("lower: --to is missing", f"tuner lower {payload} --to {STEPS[0]}")
    last: LoweringStep = _checked(step, STEPS, step)  # type: ignore[assignment]  # one of STEPS
    if form is not None and last not in WITH_FORM:
        raise UsageError(f"--form cannot be combined with --to {step}, only with {', '.join(WITH_FORM)}")
    program_options = ProgramOptions(DeviceOptions(form or "streams", pinned=pinned), math=math)
    text = read_payload_text(payload).text
    target = named_target(LOWERING_TARGET, backends_of(context), chip)
    return ProgramRequest(text, target, entry, program_options), last


def _stored(trial: str, database: str | None) -> "StoredTrial":
    number = parse_number(trial)
    with open_known_store(database) as store:
        return store.trial(number)


def _checked(step: str | None, allowed: tuple[str, ...], default: str) -> str:
    """Returns ``step``, or ``default`` for None; raises UsageError for a step that is not in ``allowed``."""
    if step is not None and step not in allowed:
        raise UsageError(f"--to: found {step!r}, allowed here {', '.join(allowed)}")
    if step is None:
        return default
    return step


def _refuse(context: click.Context, names: tuple[str, ...], what: str) -> None:
    given = settings_given(context, names)
    if given:
        raise UsageError(f"{given[0]} cannot be combined with {what}")
