import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

narrow_shuffles = pytest.importorskip("tuner.mlir.gpu.narrow_shuffles")

TEXT = """gpu.module @m {
  func.func @f(%x: f16, %offset: i32, %width: i32) -> (f16, i1) {
    %y, %valid = gpu.shuffle xor %x, %offset, %width : f16
    return %y, %valid : f16, i1
  }
}
"""


@pytest.mark.parametrize("kind", ["i8", "i16", "f16", "bf16"])
def test_shuffles_of_less_than_32_bits_move_32(kind: str) -> None:
    with parsed(TEXT.replace("f16", kind)) as module:
        assert narrow_shuffles.widen_narrow_shuffles(module) == 1
        assert module.operation.verify()
        assert "gpu.shuffle xor" in str(module).replace("  ", " ")
        assert str(module).count("arith.bitcast") == (0 if kind.startswith("i") else 2)
        assert ": i32" in str(module).split("gpu.shuffle")[1].splitlines()[0]


@pytest.mark.parametrize("kind", ["i32", "f32", "i64", "f64"])
def test_others_stay(kind: str) -> None:
    with parsed(TEXT.replace("f16", kind)) as module:
        before = str(module)
        assert narrow_shuffles.widen_narrow_shuffles(module) == 0
        assert str(module) == before
