"""What differs between runs that should be equal, as lines and as values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuner.analysis.run_difference import Difference

SHOWN = 10  # differences


def run_difference_lines(found: "Sequence[Difference]") -> list[str]:
    """Returns how many there are, and the first ones."""
    return [f"differences  {len(found)}", *(f"  {each.text}" for each in found[:SHOWN])]


def run_difference_document(found: "Sequence[Difference]") -> dict[str, Any]:
    """Returns all of them."""
    return {"differences": len(found), "found": [each.text for each in found]}
