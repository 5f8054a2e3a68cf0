"""Source locations of ops in a script or a payload, and the locations that a failure's reason names."""

import re
from dataclasses import dataclass

SCRIPT, PAYLOAD = "script", "payload"
# As tuner.mlir.rewrite.diagnostics writes them.
NAMED = re.compile(r"([\w.]+|an op) at (script|payload):(\d+):(\d+)")
# As MLIR writes a diagnostic: "payload":4:10: failed to legalize operation 'bufferization.to_tensor'
RAW = re.compile(r"\"(script|payload)\":(\d+):(\d+): [^\n:']*'(\w+\.[\w.]+)'")


@dataclass(frozen=True)
class OpPlace:
    """The name of an op and its place in the text of the script or payload: line and column, from 1.

    The script is meant as bound, with the values of all knobs filled in.
    """

    text: str  # SCRIPT or PAYLOAD
    op: str  # "transform.loop.unroll"
    line: int  # from 1
    column: int


def named_places(reason: str) -> tuple[OpPlace, ...]:
    """Returns the ops whose place an error message gives, as in ``transform.loop.unroll at script:6:2``.

    Finds places in the script and in the payload, each once; () if there are none. Places in this form come
    first, in the order of the message, then those of MLIR's own form: ``"payload":4:10: ... 'op.name'``.
    """
    named = [OpPlace(text, op, int(line), int(column)) for op, text, line, column in NAMED.findall(reason)]
    raw = [OpPlace(text, op, int(line), int(column)) for text, line, column, op in RAW.findall(reason)]
    return tuple(dict.fromkeys(named + raw))
