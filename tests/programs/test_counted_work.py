"""What a program asks of a device, counted from its code: the same as when it runs."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.gpu_fusions.group_texts import CONVOLUTION
from tests.programs.gpu_fusions.simulated import SIMULATOR, simulated, without_fusions

pytestmark = pytest.mark.mlir

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_counted_is_what_a_call_does() -> None:
    softmax = (EXAMPLES / "softmax.mlir").read_text()
    for text, shapes in (
        (softmax, ((40, 96),)),
        (CONVOLUTION, ((1, 3, 7, 6), (4, 3, 3, 3), (4,), (4,))),
    ):
        arguments = [np.ones(shape, np.float32) for shape in shapes]
        assert without_fusions(text) == simulated(text, *arguments, as_fusions=False).work


def test_launches_in_a_loop_are_not_counted() -> None:
    text = """func.func @main(%x: memref<64xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      scf.for %step = %c0 to %n step %c1 {
        scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
          %old = memref.load %x[%i] : memref<64xf32>
          %new = arith.addf %old, %old : f32
          memref.store %new, %x[%i] : memref<64xf32>
          scf.reduce
        }
      }
      return
    }"""
    assert compiler_of(SIMULATOR).work_without_fusions(text, None) is None
