import re

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.mlir.ir import memrefs

pytestmark = pytest.mark.mlir


WORKGROUP, PRIVATE = "#gpu.address_space<workgroup>", "#gpu.address_space<private>"
MODULE = text_beside(__file__, "MODULE")


def renamed(text: str) -> str:
    with parsed(text) as module:
        memrefs.name_memory_spaces(module)
        assert module.operation.verify()
        return str(module)


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


def test_a_cast_of_a_space_to_itself_goes_and_others_stay() -> None:
    assert renamed(MODULE).count("memref.memory_space_cast") == 1


def test_a_module_without_numbers_stays_as_it_is() -> None:
    text = renamed(MODULE)
    assert renamed(text) == text


def test_a_space_that_a_gpu_does_not_have_is_refused() -> None:
    allowed = re.escape("allowed 0 or 1 (global), 3 (workgroup), 5 (private)")
    with pytest.raises(CandidateError, match=f"^memref.alloc at .*: found memory space 7, {allowed}$"):
        renamed("func.func @f() { %x = memref.alloc() : memref<4xf32, 7> return }")


def test_the_attribute_of_an_allocated_tensor_changes_too() -> None:
    tensor = "bufferization.alloc_tensor() {memory_space = 3 : i64} : tensor<4xf32>"
    assert f"memory_space = {WORKGROUP}" in renamed(f"func.func @f() {{ %t = {tensor} return }}")
