"""Why a trial failed, as lines and as a JSON document."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tuner.core.errors import Failure
from tuner.core.runs import StoredTrial
from tuner.output.formatting import (
    SUMMARY_COLUMNS,
    SUMMARY_INDENT,
    knobs_line,
    one_line,
    trial_time_text,
    wrapped,
)
from tuner.output.json_documents import Document, history_document

if TYPE_CHECKING:
    from tuner.run_history.failed_ops import FailedOp

LINE_COLUMNS = SUMMARY_COLUMNS - SUMMARY_INDENT  # of a quoted line of a script or payload


def explain_lines(trial: StoredTrial, failed: "Sequence[FailedOp]", database_text: str = "") -> list[str]:
    """Returns why a trial failed, with the lines of the ops ``failed``; or one line that it did not fail.

    ``database_text`` is the ``--db`` option, with a leading space, for the commands in the lines; "" for the
    default database.
    """
    record = trial.record
    if not isinstance(record.outcome, Failure):
        time = "not timed" if trial.best_s is None else f"{trial_time_text(trial)}, {trial.reliability.word}"
        status = "compiled only" if record.is_compiled_only else record.status
        return [f"trial {trial.id} did not fail: {status}, {time}"]
    stage, reason = record.outcome.stage.value, one_line(record.outcome.reason)
    return [
        *wrapped([f"trial {trial.id} failed at stage {stage}: {reason}"]),
        f"problem   {record.problem.key}",
        f"strategy  {record.candidate.strategy}",
        *wrapped([knobs_line(record.candidate.choices)]),
        *(line for each in failed for line in _failed_op_lines(each)),
        *([f"texts     tuner show {trial.id} --json{database_text}"] if trial.script_text else []),
    ]


def explain_document(trial: StoredTrial, failed: "Sequence[FailedOp]") -> Document:
    """Returns the JSON document of ``tuner explain ID --json``; ``failed``: the ops at which it failed."""
    places = [{**asdict(each.place), "line_text": each.line_text} for each in failed]
    return {**history_document(trial), "failed_ops": places}


def _failed_op_lines(failed: "FailedOp") -> Iterator[str]:
    at = failed.place
    yield f"{at.text:<9} line {at.line}, column {at.column}: {at.op}"
    if failed.line_text:
        quoted = failed.line_text
        shown = quoted if len(quoted) <= LINE_COLUMNS else f"{quoted[: LINE_COLUMNS - 3]}..."
        yield f"{'':{SUMMARY_INDENT}}{shown}"
