import pytest

pytestmark = pytest.mark.mlir

TEXT = """module @named attributes {gpu.container_module} {
  func.func @f() -> tensor<2xi32> {
    %0 = arith.constant dense_resource<weights> : tensor<2xi32> loc("mine":7:1)
    return %0 : tensor<2xi32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000100000002000000"
    }
  }
#-}
"""


def test_a_copy_is_equal_and_changes_alone() -> None:
    from tuner.mlir.bindings import ir
    from tuner.mlir.rewrite.module_copy import copy_of

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        before = module.operation.get_asm(enable_debug_info=True)
        copied = copy_of(module)
        assert copied.operation.get_asm(enable_debug_info=True) == before
        copied.body.operations[0].operation.erase()
        assert module.operation.get_asm(enable_debug_info=True) == before
