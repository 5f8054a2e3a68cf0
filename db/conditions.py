"""The conditions of a measurement <-> JSON."""

from dataclasses import asdict
from typing import Any

from tuner.conditions import Conditions, GpuState


def stored_conditions(conditions: Conditions | None) -> dict[str, Any] | None:
    """Returns the fields of both moments."""
    return None if conditions is None else asdict(conditions)


def conditions_of(stored: dict[str, Any] | None) -> Conditions | None:
    """Reads conditions back."""
    if stored is None:
        return None
    return Conditions(_state_of(stored["before"]), _state_of(stored["after"]))


def _state_of(stored: dict[str, Any]) -> GpuState:
    return GpuState(**(stored | {"slowdowns": tuple(stored["slowdowns"])}))
