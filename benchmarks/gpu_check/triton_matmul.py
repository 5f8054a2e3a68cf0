"""A matmul in Triton, where torch and Triton are installed: a second peer next to cuBLAS.

Blocks of C in groups of rows, one ``tl.dot`` per step of K; of ``CONFIGURATIONS`` the fastest for the problem
is chosen by timing each. A user of Triton's autotuner gets the same.
"""

import functools
import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

from tuner.core.problem import Problem
from tuner.targets.gpu.event_timing import Enqueue

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "f32": torch.float32}
GROUP = 8  # rows of blocks that run together
TOLERANCE = 2.0**-7  # of the largest sum; a wrong kernel is far from it


@dataclass(frozen=True)
class LaunchSettings:
    """Block sizes and launch settings of the kernel."""

    block_m: int
    block_n: int
    block_k: int
    stages: int
    warps: int


CONFIGURATIONS = tuple(
    LaunchSettings(*each)
    for each in (
        (128, 256, 64, 3, 8),
        (128, 256, 64, 4, 8),
        (256, 128, 64, 3, 8),
        (256, 128, 64, 4, 8),
        (128, 128, 64, 4, 4),
        (128, 128, 64, 4, 8),
        (128, 256, 32, 4, 8),
        (128, 128, 32, 4, 8),
        (128, 64, 32, 4, 4),
        (64, 64, 32, 3, 4),
    )
)


@triton.jit
def kernel(  # type: ignore[no-untyped-def]  # noqa: ANN201
    a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row,  # noqa: ANN001
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, group: tl.constexpr,
    is_whole: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Multiplies a (m x k) by b (k x n); ``is_whole``: k is a multiple of ``block_k``."""
    block, across = tl.program_id(0), tl.cdiv(n, block_n)
    first = block // (group * across) * group
    height = min(tl.cdiv(m, block_m) - first, group)
    within = block % (group * across)
    row, column = first + within % height, within // height
    rows, columns = row * block_m + tl.arange(0, block_m), column * block_n + tl.arange(0, block_n)
    depths = tl.arange(0, block_k)
    left = a + (rows % m)[:, None] * a_row + depths[None, :] * a_column
    right = b + depths[:, None] * b_row + (columns % n)[None, :] * b_column
    sums = tl.zeros((block_m, block_n), dtype=tl.float32)
    for start in range(0, k, block_k):
        if is_whole:
            some_left, some_right = tl.load(left), tl.load(right)
        else:
            some_left = tl.load(left, mask=depths[None, :] < k - start, other=0.0)
            some_right = tl.load(right, mask=depths[:, None] < k - start, other=0.0)
        sums = tl.dot(some_left, some_right, sums, input_precision=precision)
        left += block_k * a_column
        right += block_k * b_row
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * c_row + columns[None, :], sums.to(c.dtype.element_ty), mask=inside)


@dataclass(frozen=True)
class TritonMatmul:
    """The fastest configuration for a problem, on random matrices of its own, found right there."""

    configuration: LaunchSettings
    enqueue: Enqueue

    @property
    def name(self) -> str:
        """Returns the library with its version."""
        return f"Triton {triton.__version__}"


def fastest(problem: Problem) -> TritonMatmul:
    """Times all configurations. Raises ValueError for a problem that the kernel does not compute."""
    if problem.dtype not in TYPES or problem.epilogue != "none" or problem.lead or problem.layout == "tn":
        raise ValueError(f"found {problem.key}, allowed matmuls nn and nt of {', '.join(TYPES)}")
    m, n, k = problem.sizes
    dtype = TYPES[problem.dtype]
    random = functools.partial(torch.randn, device="cuda", dtype=dtype)
    a, b = random(m, k), random(n, k).t() if problem.layout == "nt" else random(k, n)
    c = torch.empty(m, n, device="cuda", dtype=TYPES.get(problem.output, torch.float32))
    precision = "tf32" if problem.dtype == "tf32" else "ieee"

    def run(one: LaunchSettings) -> None:
        kernel[(math.ceil(m / one.block_m) * math.ceil(n / one.block_n),)](
            a, b, c, m, n, k, *a.stride(), *b.stride(), c.stride(0),
            block_m=one.block_m, block_n=one.block_n, block_k=one.block_k, group=GROUP,
            is_whole=k % one.block_k == 0, precision=precision, num_stages=one.stages, num_warps=one.warps,
        )  # fmt: skip

    times = {}
    for each in CONFIGURATIONS:
        try:
            times[each] = do_bench(functools.partial(run, each), warmup=10, rep=40)
        except triton.runtime.errors.OutOfResources:
            continue  # more shared memory than the chip has
    best = min(times, key=lambda each: times[each])
    run(best)
    expected = a.double() @ b.double()
    error = ((c.double() - expected).abs().max() / expected.abs().max()).item()
    if not error < TOLERANCE:
        raise ValueError(f"Triton's result differs by {error:.1e} of the largest, allowed {TOLERANCE:.1e}")

    def enqueue(stream: int) -> None:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            run(best)

    return TritonMatmul(best, enqueue)
