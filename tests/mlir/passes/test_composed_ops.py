from collections.abc import Callable

import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

composed_ops = pytest.importorskip("tuner.mlir.passes.composed_ops")

ALL_REDUCE = """gpu.module @m {
  gpu.func @k(%a: memref<64xf32>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %i = gpu.thread_id x
    %x = memref.load %a[%i] : memref<64xf32>
    %sum = gpu.all_reduce add %x uniform {} : (f32) -> f32
    memref.store %sum, %a[%i] : memref<64xf32>
    gpu.return
  }
}
"""


def expand(text: str) -> str:
    with parsed(text) as module:
        composed_ops.expand_composed_ops(module)
        assert module.operation.verify()
        return str(module)


def test_all_reduce_becomes_shuffles_and_one_thread_writes_the_result(
    golden: Callable[[str, str], None],
) -> None:
    golden("composed_ops.mlir", expand(ALL_REDUCE))


def test_global_ids_become_block_and_thread_ids() -> None:
    text = expand("gpu.module @m { func.func @f() -> index { %i = gpu.global_id x\n return %i : index } }")
    assert "gpu.global_id" not in text
    assert "gpu.block_id" in text


def test_a_kernel_without_such_operations_stays_as_it_is() -> None:
    plain = ALL_REDUCE.replace("%sum = gpu.all_reduce add %x uniform {} : (f32) -> f32", "").replace(
        "%sum", "%x"
    )
    with parsed(plain) as module:
        before = str(module)
    assert expand(plain) == before
