"""Columns of JSON: conditions of a measurement, first points of a run, seconds of a trial's passes."""

import json
from dataclasses import asdict
from typing import Any

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.gpu_conditions import Conditions, GpuState, Span
from tuner.core.pass_seconds import CompileSeconds, PassSeconds
from tuner.core.runs import FirstPoint

FOUND_LIMIT = 80  # characters of what is quoted


def stored_conditions(conditions: Conditions | None) -> dict[str, Any] | None:
    """Returns the fields of all readings."""
    return None if conditions is None else asdict(conditions)


def conditions_of(stored: dict[str, Any] | None) -> Conditions | None:
    """Reads conditions back."""
    if stored is None:
        return None
    between = stored.get("between")  # older ones have none
    return Conditions(
        GpuState(**_with_reasons(stored["before"])),
        GpuState(**_with_reasons(stored["after"])),
        None if between is None else Span(**_with_reasons(between)),
    )


def _with_reasons(stored: dict[str, Any]) -> dict[str, Any]:
    return stored | {"slowdowns": tuple(stored["slowdowns"])}


def stored_candidate(strategy: str, knobs: object) -> Candidate:
    """Reads a candidate back. Raises UsageError for knobs that no tuner wrote."""
    if not isinstance(knobs, dict) or not all(type(value) in (int, str) for value in knobs.values()):
        found = json.dumps(knobs)[:FOUND_LIMIT]
        raise UsageError(f"database: found knobs {found}, allowed names with numbers or texts; it is damaged")
    return Candidate.of(strategy, knobs)


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
    candidate = stored_candidate(stored["strategy"], stored["knobs"])
    return FirstPoint(candidate, stored["origin"], stored["source"])


def compile_seconds_of(stored: dict[str, Any] | None) -> CompileSeconds | None:
    """Reads back what each pass took."""
    if stored is None:
        return None
    passes = tuple(PassSeconds(**each) for each in stored["passes"])
    return CompileSeconds(stored["compiler"], stored["machine"], passes)
