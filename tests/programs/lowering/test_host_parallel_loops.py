import pytest

from tests.mlir.documented_ir import missing
from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

host_parallel_loops = pytest.importorskip("tuner.programs.lowering.kernels")

GRID = "blocks(%a, %b, %c) in (%u = %c1, %v = %c1, %w = %c1)"
BLOCK = "threads(%d, %e, %f) in (%x = %c1, %y = %c1, %z = %c1)"
LOOP = f"""func.func @main(%m: memref<8x8xf32>, %one: f32) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
    scf.parallel (%j, %k) = (%c0, %c1) to (%c8, %c8) step (%c1, %c1) {{
      gpu.launch {GRID} {BLOCK} {{
        memref.store %one, %m[%i, %j] : memref<8x8xf32>
        gpu.terminator
      }}
      scf.reduce
    }}
    scf.reduce
  }}
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
    memref.store %one, %m[%i, %i] : memref<8x8xf32>
    scf.reduce
  }}
  return
}}"""


def test_loops_around_launches_are_the_hosts_and_others_stay() -> None:
    with parsed(LOOP) as module:
        assert host_parallel_loops.make_host_loops(module.operation) == 2
        assert module.operation.verify()
        text = str(module)
    assert text.count("scf.for") == 3
    assert text.count("scf.parallel") == 1
    assert "scf.for %arg4 = %c1 to %c8" in text.replace("%c1_", "%c1")


def test_the_ir_of_the_docstring_is_real() -> None:
    with parsed(LOOP) as module:
        before = str(module)
        host_parallel_loops.make_host_loops(module.operation)
        assert missing(host_parallel_loops.make_host_loops.__doc__ or "", before, str(module)) == []
