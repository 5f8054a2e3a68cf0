"""``tuner tune payload.mlir``: tunes every matmul of a program, and runs the whole program."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.main import DONE, FAILED, INTERRUPTED
from tuner.cli.options import PROBLEM_OPTIONS, open_store, print_found, run_request
from tuner.cli.screen import screen_columns
from tuner.core.errors import TunerError, UsageError
from tuner.programs.torch_models.model_file import is_model

if TYPE_CHECKING:
    from tuner.analysis.comparison import Comparable, NotComparable
    from tuner.core.problem import Problem
    from tuner.programs.request import ProgramReport
    from tuner.programs.tuning import TunedProblem, TunedProgram
    from tuner.tuning.composition import Composition

SUFFIX = ".mlir"
OF_PROGRAMS = ("entry", "arguments")
# Determined by the payload.
OF_ONE_PROBLEM = ("dtype", "layout", "epilogue", "output_dtype", "align", "cache")


def is_payload(operation: object) -> bool:
    """True if the argument OPERATION is meant as a file: .mlir, a PyTorch model, or anything with a slash."""
    if not isinstance(operation, str):
        return False
    return operation.endswith(SUFFIX) or "/" in operation or is_model(operation)


def tune_payload(
    context: click.Context, composition: "Composition", database: str | None, as_json: bool, **texts: Any
) -> int:
    """Tunes each matmul of an MLIR program, runs the program, prints the result, returns the exit code.

    ``texts`` are the options of ``tuner tune``. The code is 0 for success, 1 for failure, 130 if interrupted.
    Raises UsageError for options that programs do not have.
    """
    from tuner.cli.signals import ended_by_signals
    from tuner.output.progress import progress
    from tuner.programs.options import ProgramOptions
    from tuner.programs.request import ProgramRequest
    from tuner.programs.support import program_support
    from tuner.programs.torch_models.payload_source import read_payload_text
    from tuner.programs.tuning import ProgramTuning, child_process_parts
    from tuner.tuning.interruption import Interruption
    from tuner.tuning.settings import run_settings
    from tuner.tuning.target_choice import require_runs_here, resolve_target

    _require_program_options(context, texts)
    of_runs = {name: typed for name, typed in texts.items() if name not in (*PROBLEM_OPTIONS, *OF_PROGRAMS)}
    resolved = resolve_target(texts["target"], composition, texts["chip"])
    program_support(resolved, composition)
    require_runs_here(resolved, composition, f"tuner tune {shlex.quote(texts['operation'])}")
    request = ProgramRequest(
        text=read_payload_text(Path(texts["operation"])),
        target=resolved,
        entry=texts["entry"],
        options=ProgramOptions(seed=texts["seed"]),
        arguments=texts["arguments"],
        is_compared=True,
    )
    interruption = Interruption()
    parts = child_process_parts()
    parts = replace(parts, problems=partial(_hinted_problems, parts.problems, Path(texts["operation"])))
    with open_store(database) as store, ended_by_signals(interruption), progress() as observe:
        tuning = ProgramTuning(composition, parts, store, interruption, observe)
        tuned = tuning.tune(
            request,
            lambda problem: run_settings(run_request(problem, **of_runs), composition),
            texts["operation"],
        )
    _print(tuned, as_json)
    return INTERRUPTED if tuned.is_interrupted else DONE if tuned.has_worked else FAILED


def _hinted_problems(
    find: "Callable[[str, str | None], tuple[Problem, ...]]", file: Path, text: str, entry: str | None
) -> "tuple[Problem, ...]":
    """Returns the matmuls that ``find`` finds in a program.

    An error about text of which no program can be made, and one about a program without a matmul, gets a hint
    where the contractions of the file can be tuned all the same. A wrong ``entry`` gets none.
    """
    try:
        problems = find(text, entry)
    except TunerError as error:
        is_of_text = type(error) is TunerError or (type(error) is UsageError and entry is None)
        if error.hint or not is_of_text or not _has_contractions(file):
            raise
        raise type(error)(error.message, _shapes_hint(file)) from error
    if not problems and _has_contractions(file):
        raise UsageError("no matmul of static sizes and known types", _shapes_hint(file))
    return problems


def _has_contractions(file: Path) -> bool:
    """Returns whether ``tuner tune --shapes FILE`` finds a problem in a file of MLIR."""
    from tuner.programs.contractions import model_contractions

    if file.suffix != SUFFIX:
        return False
    try:
        return bool(model_contractions(file)[0])
    except TunerError:
        return False


def _shapes_hint(file: Path) -> str:
    return f"tuner tune --shapes {shlex.quote(str(file))}"


def program_lines(tuned: "TunedProgram") -> list[str]:
    """Returns the result of a tuned program as lines: each matmul's trial, the program's run, the speedup."""
    from tuner.cli.commands.run import report_lines

    lines = [line for each in tuned.problems for line in _problem_lines(each)]
    if tuned.report is not None:
        lines += report_lines(tuned.target, tuned.report)
    if tuned.failure:
        lines.append(f"failed  {tuned.failure}")
    if tuned.plain is not None and tuned.gain is not None:
        lines.append(f"plain   {_call_text(tuned.plain)}: the same without scripts")
        lines.append(f"gain    {_gain_text(tuned.gain)}")
    return lines


def _problem_lines(each: "TunedProblem") -> list[str]:
    from tuner.analysis.selected_result import timed
    from tuner.core.record import Measurement
    from tuner.output.formatting import knobs_text, seconds_text

    lines = [f"matmul  {each.problem.key}"]
    if each.trial is None:
        return [*lines, f"        stays loops, or by default: {each.reason}"]
    record = each.trial.record
    is_timed = each.trial.final is not None or isinstance(record.outcome, Measurement)
    time = seconds_text(timed(each.trial).median_s) if is_timed else "verified, no time"
    script = f"{record.candidate.strategy} {knobs_text(record.candidate.choices)}"
    return [*lines, f"        trial {each.trial.id}: {time}, {script}"]


def _call_text(report: "ProgramReport") -> str:
    from tuner.output.formatting import seconds_text

    assert report.times is not None
    return f"{seconds_text(report.times.call_s)} a call"


def _gain_text(gain: "Comparable | NotComparable") -> str:
    from tuner.analysis.comparison import NotComparable

    if isinstance(gain, NotComparable):
        return f"unknown: {gain.reason}"
    low, high = gain.speed_interval
    return f"{gain.speed:.2f} times (95 % interval {low:.2f} .. {high:.2f})"


def _require_program_options(context: click.Context, texts: dict[str, Any]) -> None:
    """Raises UsageError for options that cannot be combined with a payload."""
    from click.core import ParameterSource

    given = [
        name for name in OF_ONE_PROBLEM if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if texts["shape"] is not None or given:
        found = texts["shape"] or f"--{given[0].replace('_', '-')}"
        raise UsageError(f"tune: {found} cannot be combined with a program: its types come from the file")
    if texts["threads"] != 1:
        raise UsageError(f"threads: found {texts['threads']}, allowed 1: a whole program runs in one thread")


def _print(tuned: "TunedProgram", as_json: bool) -> None:
    from tuner.cli.program_documents import program_document
    from tuner.output.formatting import wrapped

    print_found(as_json, program_document(tuned), *wrapped(program_lines(tuned), screen_columns()))
    if tuned.is_interrupted:
        runs = [each.tuned.run.id for each in tuned.problems if each.tuned and each.tuned.is_interrupted]
        print(f"interrupted; everything measured is stored: run {runs[0]}", file=sys.stderr)
