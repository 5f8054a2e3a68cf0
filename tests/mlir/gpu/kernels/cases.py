"""What each payload of this folder computes, in numpy."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.core.gpu_code import KernelBuffer

Array = NDArray[Any]
FOLDER = Path(__file__).parent
WARP = 32


@dataclass(frozen=True)
class Case:
    """A payload with at most one input, ``a``, and one output, ``b``."""

    name: str  # of the file
    dtype: str
    a_shape: tuple[int, ...]  # () without an input
    b_shape: tuple[int, ...]
    expected: Callable[[Array], Array]  # b of a
    shared_bytes: int  # dynamic, of the launch
    source: str = ""  # instead of the file's

    @property
    def text(self) -> str:
        """Returns the payload."""
        return self.source or (FOLDER / f"{self.name}.mlir").read_text()

    @property
    def buffers(self) -> tuple[KernelBuffer, ...]:
        """Returns its buffers in the order of its arguments."""
        item = np.dtype(self.dtype).itemsize
        b = KernelBuffer("b", int(np.prod(self.b_shape)) * item, "output")
        if not self.a_shape:
            return (b,)
        return (KernelBuffer("a", int(np.prod(self.a_shape)) * item, "input"), b)

    def draw(self, rng: np.random.Generator) -> Array:
        """Returns an input of small whole numbers: sums are exact in any order."""
        return rng.integers(-50, 50, self.a_shape).astype(self.dtype)


def _ids(_: Array) -> Array:
    grid, block = (3, 2, 1), (6, 4, 2)  # x, y, z
    rows = []
    for by, bx in np.ndindex(grid[1], grid[0]):
        for tz, ty, tx in np.ndindex(block[::-1]):
            thread = (tz * block[1] + ty) * block[0] + tx
            rows.append((bx, by, 0, tx, ty, tz, *grid, *block, thread % WARP, thread // WARP))
    return np.array(rows, np.int32)


def _rotate(a: Array) -> Array:
    i, j = np.ogrid[:64, :4]
    return np.asarray(((j + 1) * a[i, (i + j) % 4]).sum(axis=1), a.dtype)


CASES = (
    Case("barrier", "float32", (3, 64), (3, 64), lambda a: a[:, ::-1], 256),
    Case("reuse", "float32", (3, 64), (3, 64), lambda a: np.roll(a[:, ::-1], -1, axis=1), 256),
    Case("all_reduce_add", "float32", (4, 96), (4,), lambda a: a.sum(axis=1), 132),
    Case("all_reduce_region", "int32", (2, 8, 20), (2,), lambda a: a.max(axis=(1, 2)), 132),
    Case("ids", "int32", (), (288, 14), _ids, 0),
    Case("private", "float32", (64, 4), (64,), _rotate, 0),
)
