"""``tuner.bypass_l1``: which copies go around the first-level cache."""

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside

pytestmark = pytest.mark.mlir

LINE = '"tuner.bypass_l1"(%func) : (!transform.any_op) -> ()'


PAYLOAD = text_beside(__file__, "PAYLOAD")


def payload(dtype: str, elements: int) -> str:
    """Returns one copy of so many elements."""
    return PAYLOAD.replace("DTYPE", dtype).replace("ELEMENTS", str(elements))


@pytest.mark.parametrize(
    ("dtype", "elements", "bypasses"),
    [("f16", 8, True), ("f16", 4, False), ("f32", 4, True), ("f32", 1, False), ("f64", 2, True)],
)
def test_copies_of_sixteen_bytes_bypass(dtype: str, elements: int, bypasses: bool, apply: Apply) -> None:
    assert ("bypassL1" in apply(LINE, payload(dtype, elements))) == bypasses


SHOWN = LINE, payload("f16", 8)
