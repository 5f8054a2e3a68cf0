"""Where an op stands in a text, and the places that the reason of a failure names."""

import re
from dataclasses import dataclass

SCRIPT, PAYLOAD = "script", "payload"
NAMED = re.compile(r"([\w.]+|an op) at (script|payload):(\d+):(\d+)")  # as tuner.mlir.rewrite.diagnostics


@dataclass(frozen=True)
class OpPlace:
    """An op of the script as bound, or of the payload that it was given."""

    text: str  # SCRIPT or PAYLOAD
    op: str  # "transform.loop.unroll"
    line: int  # the first is 1
    column: int


def named_places(reason: str) -> tuple[OpPlace, ...]:
    """Returns the ops that a reason names with their places, each once, in its order."""
    named = (OpPlace(text, op, int(line), int(column)) for op, text, line, column in NAMED.findall(reason))
    return tuple(dict.fromkeys(named))
