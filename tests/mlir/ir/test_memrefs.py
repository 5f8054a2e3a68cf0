from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import ir, passmanager
from tuner.mlir.ir import memrefs
from tuner.mlir.ir.building import create, index
from tuner.mlir.ir.memrefs import bounds_of, elements_inside, is_inside
from tuner.mlir.ir.reading import walk

pytestmark = pytest.mark.mlir

PLAIN, VIEW = "memref<?x4xf32>", "memref<?x4xf32, strided<[8, 1], offset: 4>>"


def replaced(source: str, target: str) -> tuple[int, str]:
    text = f"""func.func @main(%a: {source}, %b: {target}) {{
      memref.copy %a, %b : {source} to {target}
      return
    }}"""
    with parsed(text) as module:
        count = memrefs.copy_views_by_loops(module.body.operations[0])
        assert module.operation.verify()
        return count, str(module)


@pytest.mark.parametrize(("source", "target"), [(PLAIN, VIEW), (VIEW, PLAIN), (VIEW, VIEW)])
def test_a_copy_of_a_view_becomes_a_loop(source: str, target: str) -> None:
    count, text = replaced(source, target)
    assert count == 1
    assert "memref.copy" not in text
    assert "scf.parallel" in text
    assert f"memref.load %arg0[%arg2, %arg3] : {source}" in text
    assert f"%arg1[%arg2, %arg3] : {target}" in text


def test_a_copy_of_adjacent_rows_stays_as_it_is() -> None:
    count, text = replaced(PLAIN, PLAIN)
    assert count == 0
    assert "memref.copy" in text


# What the arithmetic on bounds gives, folded for every index.

FUNCTION = """func.func @f(%a: memref<16x16xf32> {{tuner.bounds = array<i64: {0}>}}, %n: memref<1xindex>) {{
  return
}}"""


def counts(true: tuple[int, int], places: list[tuple[int, int]], width: int) -> list[int]:
    """Returns how many of ``width`` elements at each (row, column) the built ops say are there."""
    with parsed(FUNCTION.format(f"{true[0]}, {true[1]}")) as module:
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
    with parsed(FUNCTION.format(true)) as module:
        view, result = module.body.operations[0].regions[0].blocks[0].arguments
        assert bounds_of(view) == bounds
        assert bounds_of(result) == {}
        assert is_inside([], {}) is None


def memref(text: str) -> Any:
    return ir.MemRefType(ir.Type.parse(text))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("memref<3x5xf32>", 60),
        ("memref<3x5xf16>", 30),
        ("memref<3x5xbf16, strided<[8, 1]>>", 42),  # two rows of eight, and five
        ("memref<4xf64>", 32),
        ("memref<7xi1>", 7),
        ("memref<2xindex>", 16),
        ("memref<2xvector<4xf16>>", 16),
        ("memref<f32>", 4),
        ("memref<0x5xf32>", 0),
    ],
)
def test_the_bytes_of_a_buffer_reach_to_its_last_element(text: str, size: int) -> None:
    with parsed(""):
        assert memrefs.memref_bytes(memref(text)) == size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memref<?xf32>", r"^type: found memref<\?xf32>, allowed a static shape$"),
        (
            "memref<4xcomplex<f32>>",
            r"^element type: found complex<f32>, allowed numbers and vectors of them$",
        ),
    ],
)
def test_a_buffer_without_a_known_size_is_refused(text: str, message: str) -> None:
    with parsed(""), pytest.raises(CandidateError, match=message) as failure:
        memrefs.memref_bytes(memref(text))
    assert failure.value.stage is Stage.COMPILE


@pytest.mark.parametrize(
    ("text", "is_shared"),
    [
        ("memref<4xf32, #gpu.address_space<workgroup>>", True),
        ("memref<4xf32, 3>", True),
        ("memref<4xf32, #gpu.address_space<private>>", False),
        ("memref<4xf32, 1>", False),
        ("memref<4xf32>", False),
    ],
)
def test_shared_memory_is_reported_by_its_space(text: str, is_shared: bool) -> None:
    with parsed(""):
        assert memrefs.is_workgroup(memref(text)) == is_shared


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("memref<3x5xf32>", True),
        ("memref<3x5xf32, strided<[8, 1]>>", False),
        ("memref<3x5xf32, strided<[5, 1]>>", False),
    ],
)
def test_only_a_type_without_strides_is_row_major(text: str, is_plain: bool) -> None:
    with parsed(""):
        assert memrefs.is_row_major(memref(text)) == is_plain
