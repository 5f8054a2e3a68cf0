"""``tuner.fix_transposed_a``: which loads get other lane addresses."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.fix_transposed_a"(%func) : (!transform.any_op) -> ()'


PAYLOAD = text_beside(__file__, "PAYLOAD")


def payload(tiles: int, transpose: str) -> str:
    return PAYLOAD.replace("TILES", str(tiles)).replace("TRANSPOSE", transpose)


@pytest.mark.parametrize(("tiles", "transpose"), [(4, "false"), (2, "true")])
def test_other_loads_are_left_alone(tiles: int, transpose: str, apply: Apply) -> None:
    assert "gpu.lane_id" not in apply(LINE, payload(tiles, transpose))


SHOWN = LINE, payload(4, "true")
BECOMES = {
    "fix_transposed_a": (LINE, payload(4, "true")),
}
