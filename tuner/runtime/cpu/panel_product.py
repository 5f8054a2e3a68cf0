"""A fixed product of small packed panels, which uses a core's resources as a matmul does.

Multiply-adds alone do not. On a shared Cascade Lake, matmuls have two speeds 7 to 8 % apart for seconds at a
time, and so has this product, while a loop of multiply-adds in registers has one speed. The work is the same
in every version of the tuner.
"""

from typing import final

import numpy as np

from tuner.core.machine import Machine
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.guarded_arrays import placed_empty
from tuner.runtime.cpu.roofline import loop_text
from tuner.runtime.cpu.thread_team import ThreadTeam

# Sizes, as in panel_product.mlir
ROWS, VECTORS = 6, 2  # of C in registers: 12 sums, so that AVX2 has registers left for A and B
INNER = 256  # length of the panels
PANELS_OF_A, PANELS_OF_B = 4, 4  # B has 128 KiB with AVX-512: more than an L1 cache
ITERATIONS = 20  # of the whole product per repeat, some 0.25 ms
VALUE = 0.5  # of each element of A and B


@final
class PanelProduct:
    """A fixed product of small packed panels on each thread of a team, which shows when the host is slower.

    Each thread has separate arrays. The work is the same in every version of the tuner.
    """

    def __init__(self, team: ThreadTeam, machine: Machine) -> None:
        """Compiles the product for f32 vectors as wide as the machine's registers; fills the arrays."""
        lanes = machine.vector_bytes // 4
        self._team = team
        self._code = JittedModule(product_text(lanes), ("panel_product",))
        address = self._code.addresses["panel_product"]
        sizes = (PANELS_OF_A * INNER * ROWS, PANELS_OF_B * INNER * VECTORS * lanes, ROWS * VECTORS * lanes)
        self.arrays = [
            tuple(placed_empty((size,), np.dtype(np.float32)) for size in sizes) for _ in range(team.size)
        ]
        for array in (array for arrays in self.arrays for array in arrays):
            array.fill(VALUE)
        self._arguments = [
            PackedArguments(*(array.ctypes.data for array in arrays), ITERATIONS) for arrays in self.arrays
        ]
        self._calls = tuple((address, one.address) for one in self._arguments)

    def repeat(self, times: int) -> None:
        """Computes the product 20 (ITERATIONS) * ``times`` times on each thread of the team, in parallel."""
        self._team.repeat(self._calls, times)


def product_text(lanes: int) -> str:
    """Returns a module in LLVM dialect that multiplies each panel of A by each panel of B.

    ``lanes``: f32 numbers per vector register. Per step of the innermost loop a panel of A has ROWS floats
    and a panel of B has VECTORS vectors. C keeps the last product.
    """
    text = loop_text("panel_product").replace("FIRST", str([0] * lanes))  # the mask of a broadcast
    return f"!vector = vector<{lanes}xf32>\n{text}"
