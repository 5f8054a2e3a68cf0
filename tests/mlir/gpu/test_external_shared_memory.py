from collections.abc import Callable

import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

external_shared_memory = pytest.importorskip("tuner.mlir.gpu.external_shared_memory")

TEXT = """gpu.module @m {
  llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16} : !llvm.array<0 x i8>
  llvm.mlir.global internal @__wg_k_0() {addr_space = 3 : i32} : !llvm.array<32 x f32>
}
"""


def test_only_the_symbol_of_dynamic_memory_becomes_external(golden: Callable[[str, str], None]) -> None:
    with parsed(TEXT) as module:
        assert external_shared_memory.make_shared_memory_external(module, 1024) == 1
        assert module.operation.verify()
        golden("external_shared_memory.mlir", str(module))
