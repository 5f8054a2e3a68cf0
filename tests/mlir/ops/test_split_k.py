"""``tuner.split_k``: what becomes of launch and loop, and what it refuses."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

LINE = '"tuner.split_k"(%func) {{slices = {0} : i64}} : (!transform.any_op) -> ()'
LOOP = """scf.for %k = %c0 to %c96 step %c8 {
        memref.store %zero, %c[%k] : memref<96xf32>
      }"""


def payload(body: str = LOOP, z: str = "%c1") -> str:
    return f"""
module {{
  func.func @f(%c: memref<96xf32>, %any: index) {{
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c96 = arith.constant 96 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c8, %gz = {z})
        threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {{
      {body}
      gpu.terminator
    }}
    return
  }}
}}
"""


def test_each_block_takes_a_part_of_the_loop(apply: Apply, golden: Callable[[str, str], None]) -> None:
    golden("split_k.mlir", apply(LINE.format(4), payload()))


@pytest.mark.parametrize(
    ("text", "slices", "reason"),
    [
        (payload(body=""), 2, "found 0 loops in a launch, allowed 1"),
        (payload(body=LOOP + LOOP), 2, "found 2 loops in a launch, allowed 1"),
        (payload(z="%c8"), 2, "found a launch with more than one block along z"),
        (payload(z="%any"), 2, "found a launch with more than one block along z, or not constant"),
        (
            payload(LOOP.replace("%c96", "%any")),
            2,
            "found a loop from 0 to None by 8, allowed constants, from 0",
        ),
        (payload(LOOP.replace("%c0", "%c8")), 2, "found a loop from 8 to 96 by 8, allowed constants, from 0"),
        (payload(), 5, "slices: found 5, allowed what divides 12 trips"),
        (payload(), 0, "slices: found 0, allowed what divides 12 trips"),
    ],
)
def test_what_cannot_be_split_is_refused(text: str, slices: int, reason: str, apply: Apply) -> None:
    with pytest.raises(CandidateError, match=reason):
        apply(LINE.format(slices), text)
