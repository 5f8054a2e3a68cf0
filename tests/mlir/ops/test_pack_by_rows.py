"""``tuner.pack_by_rows``: which loops it exchanges, and which it leaves alone."""

import re

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.pack_by_rows"(%func) : (!transform.any_op) -> ()'
# Copies 64 columns of B at a time to panels of 32 rows; a mask leaves out the last columns.
PAYLOAD = text_beside(__file__, "PAYLOAD")


def steps(text: str) -> list[str]:
    """Returns the steps of the loops, the outermost first."""
    return re.findall(r"scf.for %\w+ = %\w+ to %\w+ step %(\w+)", text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%i = %c0 to %c32 step %c1", "%i = %c0 to %c32 step %c4"),  # is no loop over rows
        ("%j = %c0 to %c200 step %c64", "%j = %c0 to %c200 step %c1"),  # nor over panels
        ("%i = %c0 to %c32", "%i = %panel to %c32"),  # begins where the outer loop says
        ("%packed = memref.alloc() : !packed", "%packed = call @given() : () -> !packed"),  # may alias B
        (  # what is written is read as well
            "vector.transfer_read %b[%i, %j]",
            "vector.transfer_read %of_packed[%i, %c0]",
        ),
        ("vector.transfer_write %x", "func.call @use(%packed) : (!packed) -> ()\n vector.transfer_write %x"),
        (  # is not the last of the outer loop
            "    func.call @use(%packed) : (!packed) -> ()\n    return",
            "    return",
        ),
    ],
    ids=["rows", "panels", "bounds", "alias", "read", "call", "after"],
)
def test_other_loops_stay(old: str, new: str, apply: Apply) -> None:
    payload = PAYLOAD.replace(old, new, 1).replace(
        "func.func private @use(!packed)",
        "func.func private @use(!packed)\n  func.func private @given() -> !packed",
    )
    if "of_packed" in new:
        view = "%of_packed = memref.subview %packed[0, 0, 0] [1, 32, 64] [1, 1, 1]"
        view += " : !packed to memref<32x64xf32>"
        payload = payload.replace("    scf.for %j", f"    {view}\n    scf.for %j", 1)
        payload = payload.replace(
            "{in_bounds = [false]} : !b", "{in_bounds = [false]} : memref<32x64xf32>", 1
        )
    if new == "    return":
        payload = payload.replace(
            "      }\n    }\n", "      }\n      func.call @use(%packed) : (!packed) -> ()\n    }\n", 1
        )
    assert steps(apply(LINE, payload)) == steps(payload)


SHOWN = LINE, PAYLOAD
BECOMES = {
    "pack_by_rows": (LINE, PAYLOAD),
}
