"""What the arithmetic on bounds gives, folded for every index."""

import pytest

from tuner.mlir import transform
from tuner.mlir.bindings import ir, passmanager
from tuner.mlir.ir.building import create, index
from tuner.mlir.ir.memrefs import bounds_of, elements_inside, is_inside
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir
FUNCTION = """func.func @f(%a: memref<16x16xf32> {{tuner.bounds = array<i64: {0}>}}, %n: memref<1xindex>) {{
  return
}}"""


def counts(true: tuple[int, int], places: list[tuple[int, int]], width: int) -> list[int]:
    """Returns how many of ``width`` elements at each (row, column) the built ops say are there."""
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(FUNCTION.format(f"{true[0]}, {true[1]}"), "payload")
        block = module.body.operations[0].regions[0].blocks[0]
        view, result = block.arguments
        with ir.InsertionPoint(block.operations[0]):
            for row, column in places:
                found = elements_inside([index(row), index(column)], bounds_of(view), width)
                create("memref.store", [], [found, result, index(0)])
        passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        stored = [op.operands[0].owner for op in walk(module, "memref.store")]
        return [int(ir.IntegerAttr(op.attributes["value"]).value) for op in stored]


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("true", [(13, 16), (13, 12), (16, 11), (13, 10)])
def test_elements_inside_counts_what_is_there(true: tuple[int, int], width: int) -> None:
    places = [(row, column) for row in (0, 12, 13, 15) for column in range(0, 16, width)]
    wanted = [max(0, min(width, true[1] - column)) if row < true[0] else 0 for row, column in places]
    assert counts(true, places, width) == wanted


@pytest.mark.parametrize(
    ("true", "bounds"), [("16, 16", {}), ("13, 16", {0: 13}), ("13, 10", {0: 13, 1: 10})]
)
def test_bounds_are_where_the_type_is_larger(true: str, bounds: dict[int, int]) -> None:
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(FUNCTION.format(true), "payload")
        view, result = module.body.operations[0].regions[0].blocks[0].arguments
        assert bounds_of(view) == bounds
        assert bounds_of(result) == {}
        assert is_inside([], {}) is None
