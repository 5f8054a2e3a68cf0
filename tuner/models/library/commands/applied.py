"""The work of ``tuner apply``: a script, or a library of schedules, is applied to a payload."""

import contextlib
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.main import DONE, FAILED
from tuner.cli.options import backends_of, print_found
from tuner.core.errors import TunerError, UsageError
from tuner.core.processors import processor_of, require_instructions
from tuner.core.serialization import encode
from tuner.mlir.cpu.needed_instructions import script_instructions
from tuner.models.library.contraction_report import contraction_reports, payload_contractions
from tuner.models.library.header import is_library, read_document
from tuner.runtime.workers.worker import call_in_child
from tuner.space.scripts.header import provenance_file, read_provenance
from tuner.space.scripts.strategy import linked_text

if TYPE_CHECKING:
    from tuner.core.machine import Machine
    from tuner.models.library.contraction_report import ContractionReport
    from tuner.targets.backends import Backends

# What an error says first of: the script or the payload, and where in its text.
SUBJECT = re.compile(r"^(?:apply: )?(script|payload): ?(?:error: )?(?:line )?(?:(\d+:\d+): ?)?")
POSITION = re.compile(r"\b(script|payload)(?=:\d+:\d+)")  # in the rest of the message
TIMEOUT_S = 60.0
SHOWN = 3  # contractions of a payload in a message, which is one line


def apply_script(context: click.Context, script_text: str, payload_text: str) -> int:
    """Applies a script, or a library, to a payload; prints the result, returns the exit code.

    The exit code is 1 if --strict was given and there is a contraction that no entry of the library took,
    else 0.
    """
    params = context.params
    script, cpu, trailing, as_json = (params[name] for name in ("script", "cpu", "trailing", "as_json"))
    payload = params["payload"] or script  # one file may have both
    if params["libraries"]:
        link = partial(linked_text, script_text, script.name, params["libraries"])
        script_text = call_in_child("apply", link, TIMEOUT_S, is_named=False)
    backends = backends_of(context)
    dtype = "f32"
    for narrow in ("i8", "bf16"):
        if narrow in payload_text:
            dtype = narrow
    needs = script_instructions(script_text, dtype)
    if needs:
        require_instructions(_result_machine(backends, cpu, script, script_text), needs, script.name)
    if is_library(script_text):
        if trailing:
            raise UsageError(
                f"--debug-bind-trailing-args: {script} is a library, whose entry takes the root alone"
            )
        reports = applied_library(backends, script_text, payload_text, script.name, as_json=as_json)
        return FAILED if params["strict"] and not all(report.entry for report in reports) else DONE
    if params["strict"]:
        raise UsageError(f"--strict: {script} is not a library", "tuner export --format library -o DIR")
    arguments = tuple(trailing.split(",")) if trailing else ()
    with _with_names(script, payload):
        text = applied(
            backends,
            script_text,
            payload_text,
            script,
            allows_effects=params["allow_effects"],
            trailing=arguments,
        )
    print_found(as_json, {"payload": text}, text.rstrip("\n"))
    return DONE


@contextlib.contextmanager
def _with_names(script: Path, payload: Path) -> Iterator[None]:
    """Context manager: errors of the script or the payload begin with the name of its file."""
    try:
        yield
    except TunerError as error:
        if type(error) not in (TunerError, UsageError):
            raise
        files = {"script": str(script), "payload": str(payload)}
        subject = SUBJECT.match(error.message)
        message = error.message
        if subject is not None:
            position = ":".join(filter(None, (files[subject[1]], subject[2])))
            message = f"{position}: {message[subject.end() :]}"
        named = POSITION.sub(lambda match: files[match[1]], message)
        raise type(error)(named, error.hint) from error


def _result_machine(backends: "Backends", cpu: str, script: Path, script_text: str) -> "Machine":
    if cpu:
        return processor_of(cpu).machine
    if provenance_file(script).is_file():
        target = read_provenance(script, script_text).target
        if target.is_on_cpu and target.detail:
            return processor_of(target.detail).machine
    return backends.machine()


def applied(
    backends: "Backends",
    script: str,
    payload: str,
    file: Path,
    *,
    allows_effects: bool,
    trailing: tuple[str, ...] = (),
) -> str:
    """Returns a payload after a transform script was applied; both are MLIR text.

    ``file``: path of the script, whose provenance says what it is for. ``allows_effects``: run passes that
    write files or start programs; ``trailing``: further arguments of the script's entry. Raises TunerError
    where the script fails; if by its provenance file it is for a contraction that the payload lacks, the
    message names the contractions of both.
    """
    try:
        return backends.apply(script, payload, allows_effects, trailing)
    except TunerError as error:
        misfit = _misfit(script, payload, file)
        if misfit:
            hint = "tuner export --format library fits any number of contractions"
            raise TunerError(misfit, hint) from error
        raise


def applied_library(
    backends: "Backends", library: str, payload: str, name: str, *, as_json: bool
) -> "tuple[ContractionReport, ...]":
    """Applies a library of schedules to a payload; prints the result, and on stderr a line per contraction.

    Returns a report per contraction. ``name``: of the library's file, for messages; ``as_json``: print one
    JSON document.
    """
    problems = tuple(entry.problem for entry in read_document(library, name).entries)
    reports = call_in_child("apply", partial(contraction_reports, library, payload, problems), TIMEOUT_S)
    text = backends.apply(library, payload)
    for report in reports:
        print(report.text, file=sys.stderr)
    taken = sum(bool(report.entry) for report in reports)
    print(f"{name}: took {taken} of {len(reports)} contractions", file=sys.stderr)
    print_found(
        as_json,
        {"payload": text, "taken": taken, "contractions": list(map(encode, reports))},
        text.rstrip("\n"),
    )
    return reports


def _misfit(script: str, payload: str, file: Path) -> str:
    if not provenance_file(file).is_file():
        return ""
    provenance = read_provenance(file, script)
    problem = provenance.problem.one_matmul
    if not provenance.target.is_on_cpu or provenance.threads > 1:
        return ""
    wanted = f"linalg.matmul {problem.shape} {problem.stored_dtype} {problem.layout}"
    reports = call_in_child("apply", partial(payload_contractions, payload), TIMEOUT_S)
    if any(report.op == wanted and not report.reason for report in reports):
        return ""
    listed = ", ".join(f"{report.op} in @{report.function}" for report in reports[:SHOWN])
    more = f" and {len(reports) - SHOWN} more" if len(reports) > SHOWN else ""
    return f"{file.name}: is for {wanted}, the payload has {listed or 'no contraction'}{more}"
