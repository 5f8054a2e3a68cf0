"""A matmul for GPUs by upstream transform ops alone: tiles of A and B in shared memory, scalar arithmetic."""

from tests.texts import filled
from tuner.core.problem import Problem
from tuner.payload.cpu import payload_mlir
from tuner.payload.partitions import partition


def gpu_payload(problem: Problem) -> str:
    """Returns the payload of the whole problem."""
    return payload_mlir(problem, partition(problem, 1, "none", 1))


def gpu_script(block: int = 32, depth: int = 16, tile: int = 4) -> str:
    """Returns a script: square blocks, k in steps of ``depth``, ``tile`` x ``tile`` elements per thread."""
    threads = block // tile
    sizes = {"block": block, "depth": depth, "tile": tile, "threads": threads, "total": threads * threads}
    return filled(__file__, "SCRIPT", **sizes)
