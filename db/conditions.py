"""The conditions of a measurement <-> JSON."""

from dataclasses import asdict
from typing import Any

from tuner.conditions import Conditions, GpuState, Span


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
