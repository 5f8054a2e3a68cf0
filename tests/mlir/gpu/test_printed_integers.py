import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

printed_integers = pytest.importorskip("tuner.mlir.gpu.printed_integers")


def test_narrow_integers_are_widened_and_others_stay() -> None:
    text = """gpu.module @m {
      gpu.func @f(%a: i8, %b: i1, %c: i32, %d: f32) kernel {
        gpu.printf "%d %d %d %f", %a, %b, %c, %d : i8, i1, i32, f32
        gpu.return
      }
    }"""
    with parsed(text) as module:
        printed_integers.widen_printed_integers(module)
        assert module.operation.verify()
        found = str(module)
    assert "arith.extsi %arg0 : i8 to i32" in found
    assert "arith.extui %arg1 : i1 to i32" in found
    assert ", %arg2, %arg3 : i32, i32, i32, f32" in found
