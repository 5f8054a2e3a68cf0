"""A product of small panels that is the same in each version: it needs of a core what a matmul needs.

Multiply-adds alone do not. On a shared Cascade Lake, matmuls have two speeds 7 to 8 % apart for seconds at a
time, and so has this product, while a loop of multiply-adds in registers has one.
"""

from typing import final

import numpy as np

from tuner.core.machine import Machine
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.guarded_arrays import aligned_empty
from tuner.runtime.cpu.roofline import loop_text
from tuner.runtime.cpu.thread_team import ThreadTeam

# The sizes that panel_product.mlir has
ROWS, VECTORS = 6, 2  # of C in registers: 12 sums, so that AVX2 has registers left for A and B
INNER = 256  # the length of the panels
PANELS_OF_A, PANELS_OF_B = 4, 4  # B has 128 KiB with AVX-512: more than a first-level cache
ITERATIONS = 20  # of the whole product in a repeat, some 0.25 ms
VALUE = 0.5  # of each element of A and B


@final
class PanelProduct:
    """The product on each thread of a team, with arrays of its own. It always does the same work."""

    def __init__(self, team: ThreadTeam, machine: Machine) -> None:
        """Compiles the product for the machine's vectors of f32."""
        lanes = machine.vector_bytes // 4
        self._team = team
        self._code = JittedModule(product_text(lanes), ("panel_product",))
        address = self._code.addresses["panel_product"]
        sizes = (PANELS_OF_A * INNER * ROWS, PANELS_OF_B * INNER * VECTORS * lanes, ROWS * VECTORS * lanes)
        self.arrays = [
            tuple(aligned_empty((size,), np.dtype(np.float32)) for size in sizes) for _ in range(team.size)
        ]
        for array in (array for arrays in self.arrays for array in arrays):
            array.fill(VALUE)
        self._arguments = [
            PackedArguments(*(array.ctypes.data for array in arrays), ITERATIONS) for arrays in self.arrays
        ]
        self._calls = tuple((address, one.address) for one in self._arguments)

    def repeat(self, times: int) -> None:
        """Multiplies ``times`` times."""
        self._team.repeat(self._calls, times)


def product_text(lanes: int) -> str:
    """Returns LLVM dialect in which each panel of A meets each of B, and C keeps the last product.

    A panel of A has ROWS floats, one of B VECTORS vectors for each step of the innermost loop.
    """
    text = loop_text("panel_product").replace("FIRST", str([0] * lanes))  # the mask of a broadcast
    return f"!vector = vector<{lanes}xf32>\n{text}"
