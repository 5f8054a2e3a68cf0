"""Where a stored trial failed: lines of its script, and of the payload that the script was applied to."""

from dataclasses import dataclass

from tuner.core.errors import Failure, TunerError
from tuner.core.runs import StoredTrial
from tuner.mlir.op_place import SCRIPT, OpPlace, named_places
from tuner.tuning.composition import Composition


@dataclass(frozen=True)
class FailedOp:
    """A transform op or payload op that a trial's failure names: its location, and the source line there."""

    place: OpPlace
    line_text: str  # without its indentation


def failed_ops(composition: Composition, trial: StoredTrial) -> tuple[FailedOp, ...]:
    """Returns the transform op that failed and the payload op that it failed on, as the failure names them.

    Where the failure's reason names only the payload op, the script is applied again to find the transform
    op, which then comes first. () for a trial that did not fail or has no script, and for a reason that names
    no op.
    """
    record = trial.record
    if not isinstance(record.outcome, Failure) or not trial.script:
        return ()
    places = named_places(record.outcome.reason)
    if not places:
        return ()
    payload = composition.kind(record.target).source(record.problem, trial.script_text)
    if not any(place.text == SCRIPT for place in places):
        try:
            found = composition.failing_op(trial.script_text, payload)
        except TunerError:  # today's compiler crashes on the script
            found = None
        places = (found, *places) if found is not None else places
    texts = {SCRIPT: trial.script_text.splitlines()}
    payload_lines = payload.splitlines()
    return tuple(FailedOp(place, _line(texts.get(place.text, payload_lines), place.line)) for place in places)


def _line(lines: list[str], number: int) -> str:
    """Returns a line without indentation; '' after the end: today's payload may be another."""
    return lines[number - 1].strip() if number <= len(lines) else ""
