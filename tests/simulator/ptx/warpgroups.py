"""The Hopper kernels of data/: TMA, mbarriers and wgmma, with their launches and what they compute."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner.simulator.launch import Simulation, simulate
from tuner.simulator.memory.async_copies import TensorMap

Array = NDArray[Any]
DATA = Path(__file__).parent / "data"
TILE = 128  # rows and columns of a block of C
SIZE = 256  # rows and columns of C
ROW_BYTES = 128  # of a tile in shared memory


@dataclass(frozen=True)
class WarpgroupMatmul:
    """One kernel: C = A B of f16 or tf32; B is stored as K x N or as N x K; relu where it says so."""

    name: str
    depth: int  # k
    stages: int
    consumers: int  # warpgroups beside the producer
    dtype: Any
    has_transposed_b: bool
    stores_by_tma: bool

    @property
    def ptx(self) -> str:
        return (DATA / f"{self.name}.ptx").read_text()

    def run(self, ptx: str | None = None, seed: int | None = None) -> tuple[Simulation, Array, Array]:
        """Runs one of the four blocks; returns the simulation, its tile of C, and what that should be."""
        rng = np.random.default_rng(3)
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((SIZE, self.depth), (self.depth, SIZE)))
        if self.dtype == np.float32:
            a, b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))
        a, b = a.astype(self.dtype), b.astype(self.dtype)
        c = np.full((SIZE, SIZE), np.nan, np.float16 if self.stores_by_tma else np.float32)
        simulation = simulate(
            self.ptx if ptx is None else ptx,
            "gemm",
            (SIZE // TILE, SIZE // TILE, 1),
            (128 * (self.consumers + 1), 1, 1),
            self.arguments(a, b, c),
            self.stages * 2 * TILE * ROW_BYTES,
            blocks=((1, 0, 0),),
            schedule_seed=seed,
        )
        expected = a.astype(np.float64) @ b.astype(np.float64)
        if not self.has_transposed_b:
            expected = np.maximum(expected, 0)
        rows, columns = slice(0, TILE), slice(TILE, SIZE)
        return simulation, c[rows, columns].astype(np.float64), expected[rows, columns]

    def arguments(self, a: Array, b: Array, c: Array) -> tuple[TensorMap | Array, ...]:
        inner = ROW_BYTES // a.itemsize
        if not self.has_transposed_b:
            return TensorMap(a, (TILE, inner)), TensorMap(b, (inner, inner)), c
        maps = (TensorMap(a, (TILE, inner)), TensorMap(np.ascontiguousarray(b.T), (TILE, inner)))
        out = TensorMap(c if self.stores_by_tma else np.zeros((64, 64), np.float16), (64, 64))
        return (*maps, out, c)


WARPGROUP_MATMULS = (
    WarpgroupMatmul("wgmma_f16_nn", 384, 4, 1, np.float16, False, False),
    WarpgroupMatmul("wgmma_f16_nt", 384, 2, 2, np.float16, True, True),
    WarpgroupMatmul("wgmma_tf32_nt", 192, 4, 2, np.float32, True, False),
)
BY_NAME = {matmul.name: matmul for matmul in WARPGROUP_MATMULS}


@functools.cache
def shuffled(name: str) -> tuple[Simulation, Array, Array]:
    """Returns what a kernel gives whose threads run in random order; nobody may change it."""
    return BY_NAME[name].run(seed=1)
