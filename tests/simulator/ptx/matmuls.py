"""The matmul kernels of data/, with their launches and what they compute."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tuner.simulator.launch import Simulation, simulate
from tuner.simulator.ptx.geometry import Index3

Array = NDArray[Any]
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
        left = a.astype(np.float64) if self.layout[0] == "n" else a.astype(np.float64).T
        right = b.astype(np.float64) if self.layout[1] == "n" else b.astype(np.float64).T
        return np.asarray(left @ right)

    def run(self, ptx: str | None = None, seed: int | None = None) -> tuple[Simulation, Array, Array]:
        """Returns the simulation, C, and what C should be."""
        a, b = self.inputs()
        c = self.output()
        bias = np.linspace(-1, 1, self.sizes[1], dtype=np.float32)
        arguments = (a, b, bias, c) if self.has_epilogue else (a, b, c)
        text = self.ptx if ptx is None else ptx
        simulation = simulate(
            text, "matmul_kernel", self.grid, self.block, arguments, self.shared_bytes, schedule_seed=seed
        )
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
BY_NAME = {matmul.name: matmul for matmul in MATMULS}


@functools.cache
def shuffled(name: str) -> tuple[Simulation, Array, Array]:
    """Returns what a kernel gives whose threads run in random order; nobody may change it."""
    return BY_NAME[name].run(seed=1)
