"""``tuner.split_k``: what becomes of launch and loop, and what it refuses."""

import pytest

from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.split_k"(%func) {{slices = {0} : i64}} : (!transform.any_op) -> ()'
LOOP = """scf.for %k = %c0 to %c96 step %c8 {
        memref.store %zero, %c[%k] : memref<96xf32>
      }"""


PAYLOAD = text_beside(__file__, "PAYLOAD")


def payload(body: str = LOOP, z: str = "%c1") -> str:
    return PAYLOAD.replace("BODY", body).replace("BLOCKS", z)


SHOWN = LINE.format(4), payload()
BECOMES = {
    "split_k": (LINE.format(4), payload()),
}
REFUSED = [
    (LINE.format(2), payload(body=""), "found 0 loops in a launch, allowed 1"),
    (LINE.format(2), payload(body=LOOP + LOOP), "found 2 loops in a launch, allowed 1"),
    (LINE.format(2), payload(z="%c8"), "found a launch with more than one block along z"),
    (LINE.format(2), payload(z="%any"), "found a launch with more than one block along z, or not constant"),
    (
        LINE.format(2),
        payload(LOOP.replace("%c96", "%any")),
        "found a loop from 0 to None by 8, allowed constants, from 0",
    ),
    (
        LINE.format(2),
        payload(LOOP.replace("%c0", "%c8")),
        "found a loop from 8 to 96 by 8, allowed constants, from 0",
    ),
    (LINE.format(5), payload(), "slices: found 5, allowed what divides 12 trips"),
    (LINE.format(0), payload(), "slices: found 0, allowed what divides 12 trips"),
]
