import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

enclosing_ops = pytest.importorskip("tuner.programs.lower.enclosing_ops")
walking = pytest.importorskip("tuner.mlir.rewrite.walking")

TEXT = """func.func @f(%flag: i1, %a: memref<4xf32>, %x: f32, %i: index) {
  scf.if %flag {
    scf.if %flag {
      memref.store %x, %a[%i] : memref<4xf32>
    }
  }
  return
}"""


def test_ops_around_are_named_from_the_innermost_outwards() -> None:
    with parsed(TEXT) as module:
        (store,) = walking.walk(module, "memref.store")
        names = [op.name for op in enclosing_ops.around(store)]
        assert names == ["scf.if", "scf.if", "func.func"]


def test_an_op_has_one_holder_in_each_block_around_it() -> None:
    with parsed(TEXT) as module:
        (store,), (inner, outer) = walking.walk(module, "memref.store"), walking.walk(module, "scf.if")
        held_by = [enclosing_ops.holder_of(store, each.block) for each in (store, inner, outer)]
        assert held_by == [store, inner, outer]
        assert enclosing_ops.holder_of(outer, store.block) is None
