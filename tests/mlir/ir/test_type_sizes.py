from typing import Any

import pytest

from tests.mlir.kernels import parsed
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

type_sizes = pytest.importorskip("tuner.mlir.ir.memrefs")
ir = pytest.importorskip("tuner.mlir.bindings").ir


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
        assert type_sizes.memref_bytes(memref(text)) == size


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
        type_sizes.memref_bytes(memref(text))
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
        assert type_sizes.is_workgroup(memref(text)) == is_shared


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
        assert type_sizes.is_row_major(memref(text)) == is_plain
