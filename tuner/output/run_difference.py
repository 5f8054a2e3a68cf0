"""The differences between runs that should be equal, as lines and as a JSON document."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuner.analysis.run_difference import Difference

SHOWN = 10  # differences


def run_difference_lines(found: "Sequence[Difference]") -> list[str]:
    """Returns the number of differences between two runs' trials, and the first 10 of them, as lines."""
    return [f"differences  {len(found)}", *(f"  {each.text}" for each in found[:SHOWN])]


def run_difference_document(found: "Sequence[Difference]") -> dict[str, Any]:
    """Returns JSON of the differences between two runs' trials: their number, and the text of each."""
    return {"differences": len(found), "found": [each.text for each in found]}
