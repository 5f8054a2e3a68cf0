import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

sink_undefined = pytest.importorskip("tuner.mlir.gpu.sink_undefined")


def test_undefined_values_go_where_they_are_used() -> None:
    text = """func.func @f(%c1: index, %out: memref<2xf32>) {
      %sums = llvm.mlir.undef : !llvm.struct<(f32, f32)>
      gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
          threads(%g, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {
        %own = llvm.mlir.undef : !llvm.struct<(f32, f32)>
        %first = llvm.extractvalue %sums[0] : !llvm.struct<(f32, f32)>
        %second = llvm.extractvalue %own[1] : !llvm.struct<(f32, f32)>
        memref.store %first, %out[%a] : memref<2xf32>
        memref.store %second, %out[%c1] : memref<2xf32>
        gpu.terminator
      }
      return
    }"""
    with parsed(text) as module:
        sink_undefined.sink_undefined_values(module)
        assert module.operation.verify()
        before, _, inside = str(module).partition("gpu.launch")
        assert "llvm.mlir.undef" not in before
        assert inside.count("llvm.mlir.undef") == 2
