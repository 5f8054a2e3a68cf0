"""Source locations of ops in a script or a payload, and the locations that a failure's reason names."""

import re
from dataclasses import dataclass

SCRIPT, PAYLOAD = "script", "payload"
# As tuner.mlir.rewrite.diagnostics writes them.
NAMED = re.compile(r"([\w.]+|an op) at (script|payload):(\d+):(\d+)")


@dataclass(frozen=True)
class OpPlace:
    """Name and source location of an op of the script as bound, or of the payload that it was applied to."""

    text: str  # SCRIPT or PAYLOAD
    op: str  # "transform.loop.unroll"
    line: int  # from 1
    column: int


def named_places(reason: str) -> tuple[OpPlace, ...]:
    """Returns the ops and locations that a failure's reason names, in order and without repetition."""
    named = (OpPlace(text, op, int(line), int(column)) for op, text, line, column in NAMED.findall(reason))
    return tuple(dict.fromkeys(named))
