"""``tuner.insert_barriers``: where barriers go, and when it refuses."""

import pytest

from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.insert_barriers"(%func) {{loop_top = {0} : i64}} : (!transform.any_op) -> ()'
PAYLOAD = text_beside(__file__, "PAYLOAD")


SHOWN = LINE.format(1), PAYLOAD
BECOMES = {
    "insert_barriers_0": (LINE.format(0), PAYLOAD),
    "insert_barriers_1": (LINE.format(1), PAYLOAD),
}
REFUSED = [
    (
        LINE.format(0),
        PAYLOAD.replace(", #gpu.address_space<workgroup>", ""),
        "found 2 loops, allowed one that writes shared memory",
    ),
]
