"""Says what is wrong with an operation, and where it comes from."""

from typing import Any

from tuner.errors import CandidateError, Stage

LOCATION_LIMIT = 120  # letters of a location in a message


def unfit(op: Any, found: str, allowed: str) -> CandidateError:
    """Returns the error of an operation that does not fit."""
    return CandidateError(Stage.COMPILE, f"{op.name} {place_of(op)}: found {found}, allowed {allowed}")


def place_of(op: Any) -> str:
    """Returns where an operation comes from, for a message."""
    return f"at {str(op.location)[:LOCATION_LIMIT]}"
