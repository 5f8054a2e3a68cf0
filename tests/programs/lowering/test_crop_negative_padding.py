"""Paddings of a negative width crop, as ``F.pad`` does."""

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tuner.core.candidate import TargetName

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.bufferize")

X = np.arange(40, dtype=np.float32).reshape(5, 8)


def padded(low: tuple[int, int], high: tuple[int, int]) -> str:
    rows, columns = (size + a + b for size, a, b in zip((5, 8), low, high, strict=True))
    return f"""func.func @main(%x: tensor<5x8xf32>) -> tensor<{rows}x{columns}xf32> {{
      %c = arith.constant 7.0 : f32
      %y = tensor.pad %x low{list(low)} high{list(high)} {{
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      }} : tensor<5x8xf32> to tensor<{rows}x{columns}xf32>
      return %y : tensor<{rows}x{columns}xf32>
    }}"""


@pytest.mark.parametrize(
    ("low", "high"), [((0, -1), (0, -2)), ((-2, 1), (3, -3)), ((1, 2), (0, 0)), ((-4, 0), (2, 0))]
)
def test_a_padding_gives_what_slices_and_numpy_give(low: tuple[int, int], high: tuple[int, int]) -> None:
    from tuner.programs.run.host_function import HostFunction

    found = HostFunction(compiler_of(TargetName("cpu")).compile(padded(low, high)).code)(X)
    rows, columns = (
        slice(max(-a, 0), size - max(-b, 0)) for size, a, b in zip(X.shape, low, high, strict=True)
    )
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    np.testing.assert_array_equal(found, np.pad(X[rows, columns], widths, constant_values=7))
