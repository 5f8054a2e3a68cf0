"""Memrefs: copies of views, bounds, sizes, and the names of memory spaces."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.mlir.kernels import changed, parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.ir.padded_views import bounds_of, elements_inside, is_inside
from tuner.mlir.bindings import ir, passmanager
from tuner.mlir.ir import memory_spaces, memrefs
from tuner.mlir.ir.building import create, index
from tuner.mlir.ir.reading import walk

PLAIN, VIEW = "memref<?x4xf32>", "memref<?x4xf32, strided<[8, 1], offset: 4>>"
BOUNDS: dict[tuple[int, int], dict[int, int]] = {(16, 16): {}, (13, 16): {0: 13}, (13, 10): {0: 13, 1: 10}}


@pytest.mark.parametrize(("source", "target"), [(PLAIN, VIEW), (VIEW, PLAIN), (VIEW, VIEW), (PLAIN, PLAIN)])
def test_a_copy_of_a_view_becomes_a_loop_and_one_of_adjacent_rows_stays(source: str, target: str) -> None:
    copy = f"memref.copy %a, %b : {source} to {target}"
    text = f"func.func @main(%a: {source}, %b: {target}) {{ {copy} return }}"
    _, text, count = changed(lambda module: memrefs.copy_views_by_loops(module.body.operations[0]), text)
    is_view = (source, target) != (PLAIN, PLAIN)
    assert count == is_view
    assert ("memref.copy" in text) != is_view
    reads, writes = f"memref.load %arg0[%arg2, %arg3] : {source}", f"%arg1[%arg2, %arg3] : {target}"
    assert all((each in text) == is_view for each in ("scf.parallel", reads, writes))


def test_a_copy_to_itself_goes() -> None:
    text = f"func.func @main(%a: {VIEW}) {{ memref.copy %a, %a : {VIEW} to {VIEW} return }}"
    _, text, _ = changed(memrefs.copy_by_loops, text)
    assert "memref.copy" not in text
    assert "scf.parallel" not in text


@contextmanager
def bounded(*true: int) -> Iterator[tuple[Any, Any]]:
    """Gives a module, and the block of its function of a view of 16 x 16 with true sizes, and a result."""
    bounds = f"{{tuner.bounds = array<i64: {true[0]}, {true[1]}>}}"
    with parsed(f"func.func @f(%a: memref<16x16xf32> {bounds}, %n: memref<1xindex>) {{ return }}") as module:
        yield module, module.body.operations[0].regions[0].blocks[0]


# What the arithmetic on bounds gives, folded for every index.
@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("true", [(13, 16), (13, 12), (16, 11), (13, 10)])
def test_elements_inside_counts_what_is_there(true: tuple[int, int], width: int) -> None:
    places = [(row, column) for row in (0, 12, 13, 15) for column in range(0, 16, width)]
    with bounded(*true) as (module, block):
        view, result = block.arguments
        with ir.InsertionPoint(block.operations[0]):
            for row, column in places:
                found = elements_inside([index(row), index(column)], bounds_of(view), width)
                create("memref.store", [], [found, result, index(0)])
        passmanager.PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        stored = [op.operands[0].owner for op in walk(module, "memref.store")]
        counts = [int(ir.IntegerAttr(op.attributes["value"]).value) for op in stored]
    assert counts == [max(0, min(width, true[1] - column)) * (row < true[0]) for row, column in places]


@pytest.mark.parametrize("true", BOUNDS)
def test_bounds_are_where_the_type_is_larger(true: tuple[int, int]) -> None:
    with bounded(*true) as (_, block):
        assert [bounds_of(each) for each in block.arguments] == [BOUNDS[true], {}]
        assert is_inside([], {}) is None


def memref(text: str) -> Any:
    return ir.MemRefType(ir.Type.parse(text))


BYTES = {
    "memref<3x5xf32>": 60,
    "memref<3x5xf16>": 30,
    "memref<3x5xbf16, strided<[8, 1]>>": 42,  # two rows of eight, and five
    "memref<4xf64>": 32,
    "memref<7xi1>": 7,
    "memref<2xindex>": 16,
    "memref<2xvector<4xf16>>": 16,
    "memref<f32>": 4,
    "memref<4xcomplex<f32>>": 32,
    "memref<2xmemref<3x?xf32>>": 2 * 8 * 7,  # descriptors: two pointers, an offset, two sizes, two strides
    "memref<0x5xf32>": 0,
}
NO_BYTES = {
    "memref<?xf32>": r"^type: found memref<\?xf32>, allowed a static shape$",
    "memref<4xmemref<*xf32>>": r"^element type: found memref<\*xf32>, allowed numbers and vectors of them$",
}
SHARED = {"#gpu.address_space<workgroup>": True, "3": True, "#gpu.address_space<private>": False, "1": False}


def test_a_buffer_has_bytes_to_its_last_element_a_space_and_an_order() -> None:
    with parsed(""):
        assert {text: memrefs.memref_bytes(memref(text)) for text in BYTES} == BYTES
        for text, message in NO_BYTES.items():
            with pytest.raises(CandidateError, match=message) as failure:
                memrefs.memref_bytes(memref(text))
            assert failure.value.stage is Stage.COMPILE
        assert {each: memrefs.is_workgroup(memref(f"memref<4xf32, {each}>")) for each in SHARED} == SHARED
        assert not memrefs.is_workgroup(memref("memref<4xf32>"))
        assert memrefs.is_row_major(memref("memref<3x5xf32>"))
        for row in (8, 5):
            assert not memrefs.is_row_major(memref(f"memref<3x5xf32, strided<[{row}, 1]>>"))


WORKGROUP, PRIVATE = "#gpu.address_space<workgroup>", "#gpu.address_space<private>"
MODULE = text_beside(__file__, "MODULE")
SHOWN = {memory_spaces.name_memory_spaces: (MODULE,)}


def renamed(text: str) -> str:
    return changed(memory_spaces.name_memory_spaces, text)[1]


def test_every_number_becomes_a_word_and_global_memory_the_default() -> None:
    text = renamed(MODULE)
    assert not re.search(r", \d+( : i32)?>(?!>)", text.replace("affine_map<(d0) -> (d0)>", ""))
    for expected in (
        f'memref.global "private" @tile : memref<4xf32, {WORKGROUP}>',
        "@k(%arg0: memref<16xf32>, ",
        f"workgroup(%arg3 : memref<4x4xf16, strided<[8, 1], offset: 3>, {WORKGROUP}>)",
        f"private(%arg4 : memref<3xf32, {PRIVATE}>)",
        f"memref<16xf32, {WORKGROUP}> to memref<3xf32, strided<[1], offset: 3>, {WORKGROUP}>",
        f"memref<*xf32, {WORKGROUP}>",
        f"(memref<4xf32, {PRIVATE}>, tensor<4xf32>) -> memref<?xf32, {WORKGROUP}>",
        f"tensor = memref<64x64xf16, {WORKGROUP}>",
    ):
        assert expected in text


def test_a_cast_of_a_space_to_itself_goes_and_what_has_no_numbers_stays() -> None:
    text = renamed(MODULE)
    assert text.count("memref.memory_space_cast") == 1
    assert renamed(text) == text
    tensor = "bufferization.alloc_tensor() {memory_space = 3 : i64} : tensor<4xf32>"
    function = f"func.func @f() {{ %t = {tensor} return }}"
    assert f"memory_space = {WORKGROUP}" in renamed(function)
    assert "memory_space" not in renamed(function.replace("3 :", "1 :"))
    with pytest.raises(
        CandidateError, match=r"^bufferization.alloc_tensor at .*: found memory space 2, allowed"
    ):
        renamed(function.replace("3 :", "2 :"))
    allowed = re.escape("allowed 0 or 1 (global), 3 (workgroup), 5 (private)")
    with pytest.raises(CandidateError, match=f"^memref.alloc at .*: found memory space 7, {allowed}$"):
        renamed("func.func @f() { %x = memref.alloc() : memref<4xf32, 7> return }")
