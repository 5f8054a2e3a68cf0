"""What each pass shows in its docstring is what it does."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.mlir.documented_ir import missing
from tests.mlir.gpu import (
    test_composed_ops,
    test_device_atomics,
    test_external_shared_memory,
    test_launch_bounds,
    test_merge_gpu_modules,
    test_narrow_shuffles,
    test_private_memory,
    test_reductions,
    test_warp_ids,
)
from tests.mlir.kernels import kernel, load, parsed, store

pytestmark = pytest.mark.mlir

lowering = pytest.importorskip("tuner.mlir.gpu.lowering")

SQRT = """gpu.module @m {
  llvm.func @k(%x: f32) -> f32 {
    %y = llvm.intr.sqrt(%x) : (f32) -> f32
    llvm.return %y : f32
  }
}"""
RSQRT = """gpu.module @m {
  gpu.func @k(%p: memref<4xf16>, %i: index) kernel {
    %x = memref.load %p[%i] : memref<4xf16>
    %y = math.rsqrt %x : f16
    memref.store %y, %p[%i] : memref<4xf16>
    gpu.return
  }
}"""
TEMPORARY = """scf.for %i = %c0 to %n step %c1 {
  %t = memref.alloc() : memref<4xf32>
  memref.dealloc %t : memref<4xf32>
}"""
# Pass -> the module that it changes.
CASES: dict[Callable[..., Any], str] = {
    lowering.expand_composed_ops: test_composed_ops.GLOBAL_ID,
    lowering.expand_reductions: test_reductions.ALL_REDUCE,
    lowering.widen_narrow_shuffles: test_narrow_shuffles.TEXT,
    lowering.relax_reductions: test_device_atomics.TEXT,
    lowering.use_dynamic_shared_memory: kernel(store("a"), store("b"), load("a"), load("b")),
    lowering.make_shared_memory_external: test_external_shared_memory.TEXT,
    lowering.keep_intrinsics: SQRT,
    lowering.lower_math: RSQRT,
    lowering.outline_with_bounds: test_launch_bounds.TEXT,
    lowering.merge_gpu_modules: test_merge_gpu_modules.TWO,
    lowering.use_private_memory: test_private_memory.KERNEL.format(TEMPORARY),
    lowering.expand_warp_ids: test_warp_ids.TEXT,
}
ARGUMENTS = {
    lowering.use_dynamic_shared_memory: (4096,),
    lowering.make_shared_memory_external: (1024,),
    lowering.outline_with_bounds: (lowering.OUTLINE,),
}


@pytest.mark.parametrize("change", CASES, ids=lambda change: change.__name__)
def test_the_ir_of_a_docstring_is_real(change: Callable[..., Any]) -> None:
    with parsed(CASES[change]) as module:
        before = str(module)
        change(module, *ARGUMENTS.get(change, ()))
        assert missing(sys.modules[change.__module__].__doc__ or "", before, str(module)) == []
