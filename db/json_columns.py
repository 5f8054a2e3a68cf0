"""Columns of JSON: values by their fields, candidates and first points of a run."""

import json
from typing import Any, TypeVar

from tuner.core.candidate import Candidate
from tuner.core.dataclass_json import decode
from tuner.core.documents import candidate_document
from tuner.core.errors import UsageError
from tuner.core.runs import FirstPoint

Kind = TypeVar("Kind")

FOUND_LIMIT = 80  # characters of what is quoted


def stored_candidate(strategy: str, knobs: object) -> Candidate:
    """Reads a candidate back. Raises UsageError for knobs that no tuner wrote."""
    if not isinstance(knobs, dict) or not all(type(value) in (int, str) for value in knobs.values()):
        found = json.dumps(knobs)[:FOUND_LIMIT]
        raise UsageError(f"database: found knobs {found}, allowed names with numbers or texts; it is damaged")
    return Candidate.of(strategy, knobs)


def stored_point(point: FirstPoint) -> dict[str, Any]:
    """Returns the fields of a point."""
    return {**candidate_document(point.candidate), "origin": point.origin, "source": point.source}


def point_of(stored: dict[str, Any]) -> FirstPoint:
    """Reads a point back."""
    candidate = stored_candidate(stored["strategy"], stored["knobs"])
    return FirstPoint(candidate, stored["origin"], stored["source"])


def value_of(kind: type[Kind], stored: object) -> Kind | None:
    """Reads back a value that ``encode`` wrote; None for none. Raises UsageError for what no tuner wrote."""
    return None if stored is None else decode(kind, stored, f"database: {kind.__name__}")
