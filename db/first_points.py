"""First points of a run <-> JSON."""

from typing import Any

from tuner.first_point import FirstPoint
from tuner.space import Candidate


def stored_point(point: FirstPoint) -> dict[str, Any]:
    """Returns the fields of a point."""
    return {
        "strategy": point.candidate.strategy,
        "knobs": dict(point.candidate.choices),
        "origin": point.origin,
        "source": point.source,
    }


def point_of(stored: dict[str, Any]) -> FirstPoint:
    """Reads a point back."""
    candidate = Candidate.of(stored["strategy"], stored["knobs"])
    return FirstPoint(candidate, stored["origin"], stored["source"])
