"""The work of ``tuner lower``: what a child process lowered is printed or written."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import RunOptions, read_options
from tuner.cli.options import backends_of, print_json
from tuner.core.errors import TunerError, UsageError
from tuner.core.interfaces import Script
from tuner.core.trials import StoredTrial
from tuner.models.commands.ran import tuned_lines
from tuner.models.payload_errors import named_in_errors
from tuner.models.request import ProgramRequest
from tuner.models.service import lower_in_child
from tuner.results.database import known_url
from tuner.results.output.files import write_atomically
from tuner.results.script_stages import script_stages
from tuner.tuning.request import run_settings
from tuner.tuning.untuned import untuned_choice

if TYPE_CHECKING:
    from tuner.core.candidate import TargetName
    from tuner.core.device_programs import LoweringStep
    from tuner.core.problem import Problem

LOWER_TIMEOUT_S = 600.0


def print_program(
    payload: Path,
    request: ProgramRequest,
    last: "LoweringStep",
    database: str | None,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Prints a program's text after the lowering step ``last``, or writes it to ``output``.

    Raises UsageError for mistakes of the user, TunerError where lowering fails.
    """
    request = replace(request, database=known_url(database))
    with named_in_errors(str(payload), request.text):
        lowered = lower_in_child(request, last, LOWER_TIMEOUT_S)
    for line in tuned_lines(lowered.tuned):
        print(line, file=sys.stderr)
    content = lowered.text.rstrip("\n") + "\n"
    document = {"entry": lowered.entry, "chip": lowered.chip, "to": last}
    _write(content, document, {"text": content}, output, as_json=as_json)


def print_stages(
    context: click.Context,
    subject: "Problem | StoredTrial",
    step: str | None,
    last: str,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Prints the texts of an operation's stages up to ``last``, or of ``step`` alone, or writes a file.

    ``subject``: a trial, or a problem with the script that it has without a search. Raises TunerError where a
    stage fails, or the target has no stage ``step``.
    """
    if isinstance(subject, StoredTrial):
        target, problem, script = _of_trial(subject)
    else:
        target, problem, script = _untuned(context, subject)
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


def _of_trial(stored: StoredTrial) -> "tuple[TargetName, Problem, Script]":
    record = stored.record
    if not stored.script:
        raise UsageError(f"trial {stored.id}: has no script", f"tuner explain {stored.id}")
    print(f"trial {stored.id}: {record.candidate.text}", file=sys.stderr)
    return record.target, record.problem, Script(stored.script_text, record.script_sha256)


def _untuned(context: click.Context, problem: "Problem") -> "tuple[TargetName, Problem, Script]":
    """Returns (target, problem, script) of an operation without a search.

    Prints on stderr which script it is.
    """
    run = replace(read_options(RunOptions, context), trials=1)
    backends = backends_of(context)
    choice = untuned_choice(run_settings(run.request(problem), backends), backends)
    print(f"{problem.key}: {choice.candidate.text}; {choice.text}", file=sys.stderr)
    return choice.settings.target, problem, choice.script
