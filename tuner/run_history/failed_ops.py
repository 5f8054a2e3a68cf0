"""Where a stored trial failed: lines of its script and of the payload that the script was given."""

from dataclasses import dataclass

from tuner.core.errors import Failure, TunerError
from tuner.core.runs import StoredTrial
from tuner.mlir.op_place import SCRIPT, OpPlace, named_places
from tuner.tuning.composition import Composition


@dataclass(frozen=True)
class FailedOp:
    """An op that a failure is about, and the line that it begins on."""

    place: OpPlace
    line_text: str  # without its indentation


def failed_ops(composition: Composition, trial: StoredTrial) -> tuple[FailedOp, ...]:
    """Returns the transform op that failed and the payload op that it failed on, as far as MLIR tells.

    Where it names the payload op alone, the script is applied again to find the transform op.
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
        except TunerError:  # the compiler of today crashes on it
            found = None
        places = (found, *places) if found is not None else places
    texts = {SCRIPT: trial.script_text.splitlines()}
    payload_lines = payload.splitlines()
    return tuple(FailedOp(place, _line(texts.get(place.text, payload_lines), place.line)) for place in places)


def _line(lines: list[str], number: int) -> str:
    """Returns a line; '' behind the end, where the payload has become another one since."""
    return lines[number - 1].strip() if number <= len(lines) else ""
