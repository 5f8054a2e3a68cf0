"""The matmul kernels of data/, those of Hopper too, with what they compute, and edits of their PTX."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tuner.gpu.ptxsim.launch import Simulation, simulate
from tuner.gpu.ptxsim.memory.tensor_maps import TensorMap
from tuner.gpu.ptxsim.ptx.geometry import Index3

Array = NDArray[Any]
Edit = Callable[[str], str]  # of PTX, which it breaks
DATA = Path(__file__).parent / "data"
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32}


@dataclass(frozen=True)
class Matmul:
    """One kernel: C = A B, perhaps relu(A B + bias), and the launch it was compiled for."""

    name: str
    sizes: tuple[int, int, int]  # m, n, k
    grid: Index3
    block: Index3
    dtype: str
    layout: str = "nn"
    out: str = "f32"
    shared_bytes: int = 24576
    is_zeroed: bool = False  # C is added to
    has_epilogue: bool = False  # bias and relu

    @property
    def ptx(self) -> str:
        return (DATA / f"{self.name}.ptx").read_text()

    def inputs(self, seed: int = 1) -> tuple[Array, Array]:
        """Returns A and B as they are stored; tf32 values are representable."""
        rng = np.random.default_rng(seed)
        m, n, k = self.sizes
        shapes = ((m, k) if self.layout[0] == "n" else (k, m), (k, n) if self.layout[1] == "n" else (n, k))
        a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
        if self.dtype == "tf32":
            a, b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))
        dtype: Any = DTYPES[self.dtype]
        return a.astype(dtype), b.astype(dtype)

    def output(self) -> Array:
        m, n, _ = self.sizes
        return np.full((m, n), 0 if self.is_zeroed else np.nan, DTYPES[self.out])

    def expected(self, a: Array, b: Array) -> Array:
        turned = (x.T if order == "t" else x for x, order in zip((a, b), self.layout, strict=True))
        left, right = (x.astype(np.float64) for x in turned)
        return np.asarray(left @ right)

    def run(self, ptx: str | None = None, seed: int | None = None) -> tuple[Simulation, Array, Array]:
        """Returns the simulation, C, and what C should be."""
        (a, b), c = self.inputs(), self.output()
        bias = np.linspace(-1, 1, self.sizes[1], dtype=np.float32)
        arguments = (a, b, bias, c) if self.has_epilogue else (a, b, c)
        launch = (ptx or self.ptx, "matmul_kernel", self.grid, self.block, arguments, self.shared_bytes)
        simulation = simulate(*launch, schedule_seed=seed)
        expected = self.expected(a, b)
        return simulation, c, np.maximum(expected + bias, 0) if self.has_epilogue else expected


WARPS, SIMT = (64, 2, 1), (16, 16, 1)
MATMULS = (
    Matmul("mma_f16", (128, 128, 64), (2, 2, 1), WARPS, "f16"),
    Matmul("mma_bf16", (64, 64, 64), (1, 1, 1), WARPS, "bf16"),
    Matmul("mma_tf32_nt", (64, 64, 64), (1, 1, 1), WARPS, "tf32", "nt", shared_bytes=49152),
    Matmul("mma_f16_tn", (64, 64, 64), (1, 1, 1), WARPS, "f16", "tn"),
    Matmul("mma_f16_odd", (100, 72, 40), (2, 2, 1), WARPS, "f16"),
    Matmul("mma_f16_splitk", (64, 64, 128), (1, 1, 2), WARPS, "f16", is_zeroed=True),
    Matmul("mma_f16_epi", (64, 64, 64), (1, 1, 1), WARPS, "f16", out="f16", has_epilogue=True),
    Matmul("simt_f32", (64, 64, 32), (1, 1, 1), SIMT, "f32"),
    Matmul("simt_f32_sync", (64, 64, 32), (1, 1, 1), SIMT, "f32", shared_bytes=8192),
)
# The Hopper kernels of data/: TMA, mbarriers and wgmma, with their launches and what they compute.
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
            ptx or self.ptx,
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
        return (*maps, TensorMap(c if self.stores_by_tma else np.zeros((64, 64), np.float16), (64, 64)), c)


WARPGROUP_MATMULS = (
    WarpgroupMatmul("wgmma_f16_nn", 384, 4, 1, np.float16, False, False),
    WarpgroupMatmul("wgmma_f16_nt", 384, 2, 2, np.float16, True, True),
    WarpgroupMatmul("wgmma_tf32_nt", 192, 4, 2, np.float32, True, False),
)
BY_NAME: dict[str, Matmul | WarpgroupMatmul] = {each.name: each for each in (*MATMULS, *WARPGROUP_MATMULS)}


@functools.cache
def shuffled(name: str) -> tuple[Simulation, Array, Array]:
    """Returns what a kernel gives whose threads run in random order; nobody may change it."""
    return BY_NAME[name].run(seed=1)


def change(pattern: str, text: str | Callable[["re.Match[str]"], str], count: int = 0) -> Edit:
    """Returns the edit that replaces what matches, all of it or the first few."""
    return lambda ptx: re.sub(pattern, text, ptx, count=count)


def drop(pattern: str, count: int = 0) -> Edit:
    return change(pattern, "", count)
