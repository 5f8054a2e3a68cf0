"""The lanes that run together: all threads of some blocks, as arrays of shape (blocks, threads).

The size of an axis is 1 where a value is the same in all blocks, or in all threads of a block.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuner.programs.interpret.element_types import INDEX, Array

Sizes3 = tuple[int, int, int]  # x, y, z
SUBGROUP = 32  # lanes of a warp


@dataclass(frozen=True, eq=False)
class LaneGrid:
    """The blocks of a launch that the interpreter runs together, and the sizes of the grid and of a block.

    ``numbers`` are the linear numbers of these blocks in the grid, x fastest.
    """

    grid: Sizes3
    block: Sizes3
    numbers: Array

    @property
    def count(self) -> int:
        """Returns the number of blocks that run together."""
        return len(self.numbers)

    @property
    def threads(self) -> int:
        """Returns the number of threads per block."""
        return math.prod(self.block)

    @property
    def shape(self) -> tuple[int, int]:
        """Returns (number of blocks that run together, number of threads per block)."""
        return self.count, self.threads

    @cached_property
    def linear_thread(self) -> Array:
        """Returns the linear number of each thread in its block, x fastest, of shape (1, threads)."""
        return np.arange(self.threads, dtype=INDEX)[None, :]

    @cached_property
    def linear_block(self) -> Array:
        """Returns the linear grid number of each block that runs, x fastest, of shape (blocks, 1)."""
        return self.numbers[:, None]

    def thread_id(self, axis: int) -> Array:
        """Returns threadIdx along ``axis`` (0: x, 1: y, 2: z) of each thread, of shape (1, threads)."""
        return self.linear_thread // math.prod(self.block[:axis]) % self.block[axis]

    def block_id(self, axis: int) -> Array:
        """Returns blockIdx along ``axis`` (0: x, 1: y, 2: z) of each running block, of shape (blocks, 1)."""
        return self.linear_block // math.prod(self.grid[:axis]) % self.grid[axis]

    def describe(self, block: int, thread: int) -> str:
        """Returns the text "block (x, y, z), thread (x, y, z)" for a lane.

        ``block`` is its index among the blocks that run together, ``thread`` its linear number in the block.
        """
        number = int(self.numbers[block])
        places = (
            ", ".join(str(linear // math.prod(sizes[:axis]) % sizes[axis]) for axis in range(3))
            for linear, sizes in ((number, self.grid), (thread, self.block))
        )
        return "block ({}), thread ({})".format(*places)


def uniform(value: int) -> Array:
    """Returns ``value`` as an int64 array of shape (1, 1), which broadcasts to all lanes."""
    return np.full((1, 1), value, INDEX)
