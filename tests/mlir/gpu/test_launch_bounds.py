"""Launch bounds: the kernel of a launch gets what the launch says, and ptxas obeys."""

from collections.abc import Callable

import pytest

from benchmarks.gpu_check.gpu_point import GpuPoint
from tests.mlir.kernels import parsed
from tests.targets.gpu.strategies.points import SIMT, SIMT_LARGE
from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.core.problem import Matmul
from tuner.mlir.gpu import lowering
from tuner.mlir.gpu.kernel_passes import outline_with_bounds
from tuner.targets.gpu.compiler import find_ptxas

pytestmark = pytest.mark.mlir


LAUNCH = """  gpu.launch blocks(%i, %j, %l) in (%p = %one, %q = %one, %r = %one)
             threads(%x, %y, %z) in (%s = %one, %t = %one, %u = %one) {{
    gpu.barrier
    gpu.terminator
  }}{0}
"""
TEXT = text_beside(__file__, "TEXT")


def test_the_kernel_of_a_launch_gets_its_bounds(golden: Callable[[str, str], None]) -> None:
    with parsed(TEXT) as module:
        outline_with_bounds(module, lowering.OUTLINE)
        assert module.operation.verify()
        golden("launch_bounds.mlir", str(module))


@pytest.mark.slow
def test_two_blocks_have_half_of_the_registers_each() -> None:
    one = GpuPoint(Matmul(256, 256, 64), Candidate.of(SIMT, SIMT_LARGE | {"min_blocks": 2}))
    program = one.program()
    assert ".minnctapersm 2" in program.ptx
    ptxas = find_ptxas()
    if ptxas is not None:
        (resources,) = ptxas.assemble(program).resources
        assert resources.registers <= 128
        assert resources.spilled_bytes == 0
        assert resources.blocks_per_multiprocessor == 2
