"""``tuner lower``: the IR of a program after one step of its lowering, or of an operation after each."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import ProblemOptions, RunOptions, read_options
from tuner.cli.options import (
    PROBLEM_OPTIONS,
    backends_of,
    database_option,
    json_option,
    open_known_store,
    parse_number,
    print_json,
    problem_options,
    shown_choices,
    space_option,
    target_options,
)
from tuner.cli.session import settings_given
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import Script
from tuner.core.problem import OPERATIONS
from tuner.programs.commands.payload_text import read_payload_text, require_kind_of_payload
from tuner.programs.commands.run import tuned_lines
from tuner.programs.payload_errors import named_in_errors
from tuner.programs.request import FORMS, STEPS, WITH_FORM, DeviceOptions, ProgramOptions, ProgramRequest
from tuner.programs.service import lower_in_child
from tuner.results.database import known_url
from tuner.results.output.files import write_atomically
from tuner.results.script_stages import ASSEMBLY, SCRIPT_STAGES, script_stages
from tuner.targets.backends import named_target
from tuner.tuning.request import run_settings
from tuner.tuning.untuned import untuned_choice

if TYPE_CHECKING:
    from tuner.core.candidate import TargetName
    from tuner.core.problem import Problem
    from tuner.programs.request import Form, LoweringStep

LOWERING_TARGET = "simulator"  # compiles for every chip and needs no GPU
LOWER_TIMEOUT_S = 600.0
FORM = shown_choices(FORMS)
EXAMPLE_SIZES = "64x64x64"
OF_PROGRAM = ("entry", "form", "pinned")
MATH = "math"  # the option of a problem that programs have too
OF_OPERATION = (
    *(name for name in PROBLEM_OPTIONS if name != MATH),
    *("target", "cpu", "strategies", "threads", "space", "trial"),
)


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
        database = known_url(options["database"])
        names = ("entry", "form", "chip", "pinned", MATH)
        chosen = (*(options[name] for name in names), database)
        _print_program(context, Path(operation), step, *chosen, output=output, as_json=as_json)
        return
    _refuse(context, OF_PROGRAM, f"a trial, {trial}" if trial else f"an operation, {operation}")
    last = _checked(step, SCRIPT_STAGES, ASSEMBLY)
    if trial is None:
        target, problem, script = _untuned(context)
    elif operation is None:
        target, problem, script = _of_trial(trial, options["database"])
    else:
        raise UsageError(f"--trial cannot be combined with {operation}: a trial has its operation")
    stages = script_stages(backends_of(context), target, problem, script, last)
    if step is not None and step not in stages.texts:
        no_stage = f"found no such stage on target {target}, allowed {', '.join(stages.texts)}"
        raise TunerError(f"--to {step}: {stages.failure or no_stage}")
    content = "\n".join(f"// ----- {stage}\n{text.rstrip()}\n" for stage, text in stages.texts.items())
    if step is not None:
        content = stages.texts[step].rstrip() + "\n"
    document = {"problem": problem.key, "target": target.text, "failure": stages.failure}
    texts = stages.texts if step is None else {step: stages.texts[step]}
    _write(content, document, {"stages": texts}, output, as_json=as_json)
    if step is None and stages.failure:
        raise TunerError(stages.failure)


def _print_program(
    context: click.Context,
    payload: Path,
    step: str | None,
    entry: str | None,
    form: "Form | None",
    chip: str,
    pinned: bool,
    math: str,
    database: str,
    *,
    output: Path | None,
    as_json: bool,
) -> None:
    require_kind_of_payload(payload)
    if step is None:
        raise UsageError("lower: --to is missing", f"tuner lower {payload} --to {STEPS[0]}")
    last: LoweringStep = _checked(step, STEPS, step)  # type: ignore[assignment]  # one of STEPS
    if form is not None and last not in WITH_FORM:
        raise UsageError(f"--form cannot be combined with --to {step}, only with {', '.join(WITH_FORM)}")
    program_options = ProgramOptions(DeviceOptions(form or "streams", pinned=pinned), math=math)
    text = read_payload_text(payload).text
    target = named_target(LOWERING_TARGET, backends_of(context), chip)
    request = ProgramRequest(text, target, entry, program_options, database=database)
    with named_in_errors(str(payload), text):
        lowered = lower_in_child(request, last, LOWER_TIMEOUT_S)
    for line in tuned_lines(lowered.tuned):
        print(line, file=sys.stderr)
    content = lowered.text.rstrip("\n") + "\n"
    document = {"entry": lowered.entry, "chip": lowered.chip, "to": step}
    _write(content, document, {"text": content}, output, as_json=as_json)


def _write(
    content: str,
    document: dict[str, Any],
    texts: dict[str, Any],  # of the document, where no file is written
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    if output is not None:
        write_atomically(output, content.encode())
    if as_json:
        print_json(document | (texts if output is None else {"file": str(output)}))
    elif output is None:
        print(content, end="")


def _checked(step: str | None, allowed: tuple[str, ...], default: str) -> str:
    """Returns the step, or the default; raises UsageError for one that is not allowed."""
    if step is not None and step not in allowed:
        raise UsageError(f"--to: found {step!r}, allowed here {', '.join(allowed)}")
    if step is None:
        return default
    return step


def _refuse(context: click.Context, names: tuple[str, ...], what: str) -> None:
    given = settings_given(context, names)
    if given:
        raise UsageError(f"{given[0]} cannot be combined with {what}")


def _of_trial(trial: str, database: str | None) -> "tuple[TargetName, Problem, Script]":
    with open_known_store(database) as store:
        stored = store.trial(parse_number(trial))
    record = stored.record
    if not stored.script:
        raise UsageError(f"trial {stored.id}: has no script", f"tuner explain {stored.id}")
    print(f"trial {stored.id}: {record.candidate.text}", file=sys.stderr)
    return record.target, record.problem, Script(stored.script_text, record.script_sha256)


def _untuned(context: click.Context) -> "tuple[TargetName, Problem, Script]":
    """Returns the script that an operation has without a search, and says on stderr which it is."""
    problem = read_options(ProblemOptions, context).required_problem(context, EXAMPLE_SIZES)
    run = replace(read_options(RunOptions, context), trials=1)
    backends = backends_of(context)
    choice = untuned_choice(run_settings(run.request(problem), backends), backends)
    print(f"{problem.key}: {choice.candidate.text}; {choice.text}", file=sys.stderr)
    return choice.settings.target, problem, choice.script
