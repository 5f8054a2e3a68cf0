from collections.abc import Callable

import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

device_atomics = pytest.importorskip("tuner.mlir.gpu.device_atomics")

TEXT = """llvm.func @k(%p: !llvm.ptr<1>, %x: f32) -> f32 {
  %unread = llvm.atomicrmw fadd %p, %x acq_rel : !llvm.ptr<1>, f32
  %read = llvm.atomicrmw fadd %p, %x acq_rel : !llvm.ptr<1>, f32
  llvm.return %read : f32
}
"""


def test_only_atomics_whose_result_nobody_reads_are_relaxed(golden: Callable[[str, str], None]) -> None:
    with parsed(TEXT) as module:
        assert device_atomics.relax_reductions(module) == 1
        assert module.operation.verify()
        golden("device_atomics.mlir", str(module))
