"""``tuner.insert_barriers``: where barriers go, and when it refuses."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

LINE = '"tuner.insert_barriers"(%func) {{loop_top = {0} : i64}} : (!transform.any_op) -> ()'
PAYLOAD = text_beside(__file__, "PAYLOAD")


@pytest.mark.parametrize("loop_top", [0, 1])
def test_a_barrier_stands_after_the_last_write_and_where_asked_at_the_top(
    loop_top: int, apply: Apply, golden: Callable[[str, str], None]
) -> None:
    golden(f"insert_barriers_{loop_top}.mlir", apply(LINE.format(loop_top), PAYLOAD))


def test_a_function_that_fills_no_shared_memory_in_a_loop_is_refused(apply: Apply) -> None:
    elsewhere = PAYLOAD.replace(", #gpu.address_space<workgroup>", "")
    with pytest.raises(
        CandidateError, match="found 2 loops, allowed one that writes shared memory"
    ) as caught:
        apply(LINE.format(0), elsewhere)
    assert caught.value.stage == Stage.COMPILE
