import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

parameters = pytest.importorskip("tuner.mlir.gpu.tensor_map_parameters")


def test_pointers_of_kernels_are_noted() -> None:
    text = """gpu.module @m {
      gpu.func @k(%a: !llvm.ptr, %c: memref<4xf32>, %b: !llvm.ptr) kernel { gpu.return }
      gpu.func @plain(%c: memref<4xf32>) kernel { gpu.return }
    }"""
    with parsed(text) as module:
        parameters.note_tensor_maps(module)
        assert str(module).count("tuner.tensor_maps") == 1
        assert "tuner.tensor_maps = array<i64: 0, 2>" in str(module)


def test_noted_parameters_go_by_value_and_keep_their_attributes() -> None:
    text = """gpu.module @m {
      llvm.func @k(%a: !llvm.ptr {llvm.noalias}, %c: !llvm.ptr {llvm.nonnull}) attributes {
        gpu.kernel, nvvm.kernel, tuner.tensor_maps = array<i64: 0>} { llvm.return }
    }"""
    with parsed(text) as module:
        parameters.pass_tensor_maps_by_value(module)
        assert module.operation.verify()
        whole = (
            "%arg0: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, llvm.noalias, "
            "nvvm.grid_constant}, %arg1: !llvm.ptr {llvm.nonnull}"
        )
        assert whole in str(module)
        assert "tuner.tensor_maps" not in str(module)
