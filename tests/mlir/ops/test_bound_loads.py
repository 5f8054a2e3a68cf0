"""``tuner.bound_loads``: what becomes of reads of padded views."""

from collections.abc import Callable

import pytest

from tests.mlir.ops.conftest import Apply
from tuner.core.errors import CandidateError

pytestmark = pytest.mark.mlir

LINE = '"tuner.bound_loads"(%func) {{is_synchronous = {0} : i64}} : (!transform.any_op) -> ()'


def payload(bounds: str, width: int = 4, read: str = "vector.load %a[%i, %j]") -> str:
    """Returns a copy of a vector of A (64 x 64, rows of 60) to shared memory, and one to C."""
    a, vector = "memref<64x64xf32, strided<[60, 1]>>", f"vector<{width}xf32>"
    tile = "memref<64x64xf32, #gpu.address_space<workgroup>>"
    return f"""
module {{
  func.func @f(%a: {a} {bounds}, %c: memref<64x64xf32>, %i: index, %j: index) {{
    %zero = arith.constant 0.0 : f32
    %tile = memref.alloc() : {tile}
    %in = {read} : {a}, {vector}
    vector.store %in, %tile[%i, %j] : {tile}, {vector}
    %direct = vector.load %a[%j, %i] : {a}, {vector}
    vector.store %direct, %c[%j, %i] : memref<64x64xf32>, {vector}
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("name", "true", "is_synchronous"),
    [
        ("whole_vectors", "50, 60", 0),
        ("cut_vectors", "50, 58", 0),
        ("rows_only", "50, 64", 0),
        ("synchronous", "50, 60", 1),
        ("synchronous_cut", "64, 59", 1),
    ],
)
def test_reads_give_zero_beyond_the_true_sizes(
    name: str, true: str, is_synchronous: int, apply: Apply, golden: Callable[[str, str], None]
) -> None:
    text = apply(LINE.format(is_synchronous), payload(f"{{tuner.bounds = array<i64: {true}>}}"))
    golden(f"bound_loads_{name}.mlir", text)


@pytest.mark.parametrize("bounds", ["", "{tuner.bounds = array<i64: 64, 64>}"])
def test_a_view_that_overhangs_nothing_is_left_alone(bounds: str, apply: Apply) -> None:
    text = apply(LINE.format(0), payload(bounds))
    assert text.count("vector.load") == 2
    assert "scf.if" not in text


def test_a_read_in_another_form_is_refused(apply: Apply) -> None:
    strange = payload("{tuner.bounds = array<i64: 50, 60>}", read="vector.transfer_read %a[%i, %j], %zero")
    with pytest.raises(CandidateError, match=r"found vector\.transfer_read of a padded view, allowed vector"):
        apply(LINE.format(0), strange)
