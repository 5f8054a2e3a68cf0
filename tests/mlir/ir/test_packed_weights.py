"""How arguments say that weights come packed."""

import pytest

from tests.mlir.kernels import parsed
from tuner.core.fusions import WeightPacking
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk
from tuner.mlir.ir.vnni import packing_of, set_packed, set_packed_as

pytestmark = pytest.mark.mlir

TEXT = (
    "func.func @f(%w: memref<64x100xf32> {tuner.weight}, %x: memref<8x3x3x3xf32> {tuner.weight}) { return }"
)


def test_a_packed_argument_has_the_type_of_its_panels() -> None:
    with parsed(TEXT) as module:
        (function,) = walk(module, "func.func")
        assert packing_of(function, 0) is None
        set_packed(function, 0, 48)
        assert packing_of(function, 0) == WeightPacking(48)
        assert "(%arg0: memref<3x64x48xf32> {tuner.packing = 48 : i64, tuner.weight}" in str(function)


def test_an_order_stays_when_panels_are_made() -> None:
    with parsed(TEXT) as module:
        (function,) = walk(module, "func.func")
        element = ir.F32Type.get()
        set_packed_as(function, 1, ir.MemRefType.get([3, 3, 3, 8], element), 8, (2, 3, 1, 0))
        assert packing_of(function, 1) == WeightPacking(8, order=(2, 3, 1, 0))
        set_packed_as(function, 1, ir.MemRefType.get([2, 3, 3, 3, 4], element), 4)
        assert packing_of(function, 1) == WeightPacking(4, order=(2, 3, 1, 0))
        assert function.verify()


def test_words_of_unsigned_bytes_are_read_back() -> None:
    with parsed(TEXT) as module:
        (function,) = walk(module, "func.func")
        kind = ir.MemRefType.get([128, 256], ir.IntegerType.get_signless(8))
        set_packed_as(function, 0, kind, 64, interleave=4, depth=64, unsigned=True)
        assert packing_of(function, 0) == WeightPacking(64, 4, depth=64, unsigned=True)
        assert "tuner.unsigned = 1 : i64" in str(function)


def test_runs_of_rows_are_read_back_and_stay_when_panels_are_made() -> None:
    with parsed(TEXT) as module:
        (function,) = walk(module, "func.func")
        kind = ir.MemRefType.get([2, 8], ir.IntegerType.get_signless(32))
        set_packed_as(function, 0, kind, 8, [1, 0], interleave=2, depth=2, run=3)
        set_packed_as(function, 0, kind, 4)
        assert packing_of(function, 0) == WeightPacking(4, 2, (1, 0), depth=2, run=3)
