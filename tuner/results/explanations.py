"""Explanations of a trial: why and at which ops it failed, and where its compile time goes."""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tuner.core.errors import SCRIPT, CandidateError, Failure, OpPlace, TunerError, UsageError, named_places
from tuner.core.interfaces import Script
from tuner.core.records import CompileSeconds, PassSeconds
from tuner.core.trials import StoredTrial
from tuner.db.store import Store
from tuner.results.output.formatting import (
    SUMMARY_COLUMNS,
    SUMMARY_INDENT,
    knobs_line,
    one_line,
    trial_time_text,
    wrapped,
)
from tuner.results.output.json_documents import Document, history_document
from tuner.targets.backends import Backends

LINE_COLUMNS = SUMMARY_COLUMNS - SUMMARY_INDENT  # of a quoted line of a script or payload


@dataclass(frozen=True)
class FailedOp:
    """A transform op or payload op that a trial's failure names: its location, and the source line there."""

    place: OpPlace
    line_text: str  # without its indentation


def explain_lines(trial: StoredTrial, failed: Sequence[FailedOp], database_text: str = "") -> list[str]:
    """Returns lines that say why a trial failed and at which ops; for a trial that did not fail, one line.

    ``failed``: the result of ``failed_ops``. ``database_text``: the option --db for printed commands, or "".
    """
    record = trial.record
    if not isinstance(record.outcome, Failure):
        if trial.best_s is None:
            time = "not timed"
        else:
            time = f"{trial_time_text(trial)}, {trial.reliability.word}"
        status = "compiled only" if record.is_compiled_only else record.status
        return [f"trial {trial.id} did not fail: {status}, {time}"]
    stage = record.outcome.stage.value
    reason = one_line(record.outcome.reason)
    lines = [
        *wrapped([f"trial {trial.id} failed at stage {stage}: {reason}"]),
        f"problem   {record.problem.key}",
        f"strategy  {record.candidate.strategy}",
        *wrapped([knobs_line(record.candidate.choices)]),
    ]
    for failed_op in failed:
        at = failed_op.place
        quoted = failed_op.line_text
        lines.append(f"{at.text:<9} line {at.line}, column {at.column}: {at.op}")
        if quoted:
            shown = quoted if len(quoted) <= LINE_COLUMNS else f"{quoted[: LINE_COLUMNS - 3]}..."
            lines.append(f"{'':{SUMMARY_INDENT}}{shown}")
    return lines + ([f"texts     tuner show {trial.id} --json{database_text}"] if trial.script_text else [])


def explain_document(trial: StoredTrial, failed: Sequence[FailedOp]) -> Document:
    """Returns the JSON document of ``tuner explain ID --json``; ``failed``: the ops at which it failed."""
    places = [{**asdict(failed_op.place), "line_text": failed_op.line_text} for failed_op in failed]
    return {**history_document(trial), "failed_ops": places}


def pass_seconds(backends: Backends, store: Store, trial: StoredTrial) -> tuple[PassSeconds, ...]:
    """Returns how many seconds each compiler pass takes to compile a trial's script, the slowest pass first.

    Uses stored times of the installed compiler on this machine, else compiles again and stores the times.
    Raises UsageError for a failed trial, for one without a script, and for a rejected script.
    """
    record = trial.record
    if not trial.script or record.status == "failed":
        raise UsageError(f"trial {trial.id}: does not compile")
    compiler = backends.target(record.target).compiler(record.target).fingerprint
    machine = backends.machine().name
    stored = trial.compile_seconds
    if stored is not None and (stored.compiler, stored.machine) == (compiler, machine):
        return stored.passes
    from tuner.mlir.passes import timed_passes  # loads MLIR

    script = Script(trial.script_text, record.script_sha256)
    with timed_passes() as times:
        try:
            backends.target(record.target).code(record.target, record.problem, script)
        except CandidateError as error:
            raise UsageError(f"trial {trial.id}: does not compile any more: {error}") from error
    with contextlib.suppress(UsageError):  # a read-only database: the seconds are returned all the same
        store.set_compile_seconds(trial.id, CompileSeconds(compiler, machine, times.passes))
    return times.passes


def failed_ops(backends: Backends, trial: StoredTrial) -> tuple[FailedOp, ...]:
    """Returns the transform op that failed and the payload op that it failed on, as the failure names them.

    If the failure names only the payload op, the script is applied again to find the transform op. () for a
    trial that did not fail, has no script, or whose failure names no op.
    """
    record = trial.record
    if not isinstance(record.outcome, Failure) or not trial.script:
        return ()
    places = named_places(record.outcome.reason)
    if not places:
        return ()
    payload = backends.target(record.target).source(record.problem, trial.script_text)
    if not any(place.text == SCRIPT for place in places):
        with contextlib.suppress(TunerError):  # today's compiler crashes on the script
            transform = backends.failing_op(trial.script_text, payload)
            places = (transform, *places) if transform is not None else places
    failed = []
    for location in places:
        lines = (trial.script_text if location.text == SCRIPT else payload).splitlines()
        is_there = location.line <= len(lines)  # today's payload may be another
        failed.append(FailedOp(location, lines[location.line - 1].strip() if is_there else ""))
    return tuple(failed)
