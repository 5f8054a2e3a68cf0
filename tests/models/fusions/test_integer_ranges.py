"""Ranges of integers that a program computes hold all numbers that the operations can give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import ops_in
from tuner.mlir.transform import new_context
from tuner.models.fusions.integer_ranges import range_of

pytestmark = pytest.mark.mlir
BODY = """
#map = affine_map<(i) -> (i)>
func.func @init(%a: tensor<256xi8>) -> tensor<256xi8> {{
  %c = arith.constant {constant} : i8
  %empty = tensor.empty() : tensor<256xi8>
  %r = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel"]}}
      ins(%a : tensor<256xi8>) outs(%empty : tensor<256xi8>) {{
  ^bb0(%x: i8, %y: i8):
{steps}
    linalg.yield %v{last} : i8
  }} -> tensor<256xi8>
  return %r : tensor<256xi8>
}}
"""
BYTES = np.arange(-128, 128, dtype=np.int8)
NUMPY = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.andi": np.bitwise_and,
    "arith.shrsi": np.right_shift,
    "arith.xori": np.bitwise_xor,  # has no rule
}


def range_of_text(text: str) -> tuple[int, int]:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        *_, end = ops_in(module.body.operations[0].operation.regions[0].blocks[0])
        return range_of(end.operands[0])


@costly(20, 200)
@given(st.lists(st.sampled_from(list(NUMPY)), min_size=1, max_size=4), st.integers(-8, 127))
def test_a_range_has_what_the_operations_give(names: list[str], constant: int) -> None:
    numbers = BYTES
    steps = []
    before = "%x"
    for index, name in enumerate(names):
        if name == "arith.shrsi" and not 0 <= constant < 8:
            name = "arith.andi"  # a shift by more than the type's bits is undefined
        numbers = NUMPY[name](numbers, np.int8(constant))
        steps.append(f"    %v{index} = {name} {before}, %c : i8")
        before = f"%v{index}"
    text = BODY.format(constant=constant, steps="\n".join(steps), last=len(names) - 1)
    low, high = range_of_text(text)
    assert low <= numbers.min()
    assert numbers.max() <= high


def test_nibbles_of_a_byte_have_four_bits() -> None:
    steps = (
        "    %v0 = arith.andi %x, %c : i8\n    %d = arith.constant 8 : i8\n    %v1 = arith.subi %v0, %d : i8"
    )
    assert range_of_text(BODY.format(constant=15, steps=steps, last=1)) == (-8, 7)
    assert range_of_text(BODY.format(constant=4, steps="    %v0 = arith.shrsi %x, %c : i8", last=0)) == (
        -8,
        7,
    )


def test_a_sum_that_wraps_around_may_be_any_number() -> None:
    assert range_of_text(BODY.format(constant=1, steps="    %v0 = arith.addi %x, %c : i8", last=0)) == (
        -128,
        127,
    )
