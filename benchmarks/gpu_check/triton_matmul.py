"""A matmul in Triton, where torch and Triton are installed: a second peer next to cuBLAS.

Of ``CONFIGURATIONS`` of the kernel the fastest for the problem is chosen by timing each, as Triton's own
autotuner does.
"""

import functools
import math
from dataclasses import dataclass

import torch
import triton
from triton.testing import do_bench

from benchmarks.machine_code.triton_matmul import matmul
from tuner.core.problem import Problem
from tuner.gpu.target.event_timing import Enqueue

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
    is_transposed = problem.layout == "nt"
    a, b = random(m, k), random(n, k).t() if is_transposed else random(k, n)
    c = torch.empty(m, n, device="cuda", dtype=TYPES.get(problem.output, torch.float32))
    precision = "tf32" if problem.dtype == "tf32" else "ieee"

    def run(one: LaunchSettings) -> None:
        matmul[(math.ceil(m / one.block_m) * math.ceil(n / one.block_n),)](
            a, b, c, m, n, k, a.stride(0), b.stride(1 if is_transposed else 0), c.stride(0),
            block_m=one.block_m, block_n=one.block_n, block_k=one.block_k, group=GROUP,
            is_transposed=is_transposed, is_whole=k % one.block_k == 0, precision=precision,
            num_stages=one.stages, num_warps=one.warps,
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
