"""JSON columns: dataclasses by their fields, candidates, and the first points of a run."""

import json
from typing import Any, TypeVar

from tuner.core.candidate import Candidate
from tuner.core.dataclass_json import decode
from tuner.core.documents import candidate_document
from tuner.core.errors import UsageError
from tuner.core.runs import FirstPoint

Kind = TypeVar("Kind")

FOUND_LIMIT = 80  # characters of a quoted value


def stored_candidate(strategy: str, knobs: object) -> Candidate:
    """Returns the candidate with a strategy's name and the knobs of a JSON column: {name: value}.

    Raises UsageError for damaged knobs: not an object, or a value that is neither an integer nor a text.
    """
    if not isinstance(knobs, dict) or not all(type(value) in (int, str) for value in knobs.values()):
        found = json.dumps(knobs)[:FOUND_LIMIT]
        raise UsageError(f"database: found knobs {found}, allowed names with numbers or texts; it is damaged")
    return Candidate.of(strategy, knobs)


def stored_point(point: FirstPoint) -> dict[str, Any]:
    """Returns a first point (a candidate that is proposed before the sampler's) as a JSON object to store."""
    return {**candidate_document(point.candidate), "origin": point.origin, "source": point.source}


def point_of(stored: dict[str, Any]) -> FirstPoint:
    """Returns the first point (a candidate proposed before the sampler's) that ``stored_point`` wrote.

    Raises UsageError for damaged knobs.
    """
    candidate = stored_candidate(stored["strategy"], stored["knobs"])
    return FirstPoint(candidate, stored["origin"], stored["source"])


def value_of(kind: type[Kind], stored: object) -> Kind | None:
    """Returns the value of type ``kind`` from a JSON column; None for NULL.

    The column must have been written by ``tuner.core.dataclass_json.encode``. Raises UsageError for other
    JSON.
    """
    return None if stored is None else decode(kind, stored, f"database: {kind.__name__}")
