import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

composed_ops = pytest.importorskip("tuner.mlir.gpu.composed_ops")

GLOBAL_ID = """gpu.module @m {
  gpu.func @k(%a: memref<64xf32>, %x: f32) kernel {
    %i = gpu.global_id x
    memref.store %x, %a[%i] : memref<64xf32>
    gpu.return
  }
}
"""


def expand(text: str) -> str:
    with parsed(text) as module:
        composed_ops.expand_composed_ops(module)
        assert module.operation.verify()
        return str(module)


def test_global_ids_become_block_and_thread_ids() -> None:
    text = expand("gpu.module @m { func.func @f() -> index { %i = gpu.global_id x\n return %i : index } }")
    assert "gpu.global_id" not in text
    assert "gpu.block_id" in text


def test_a_kernel_without_such_operations_stays_as_it_is() -> None:
    plain = GLOBAL_ID.replace("gpu.global_id", "gpu.thread_id")
    with parsed(plain) as module:
        before = str(module)
    assert expand(plain) == before
