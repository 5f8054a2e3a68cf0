"""A matmul for GPUs by upstream transform ops alone: tiles of A and B in shared memory, scalar arithmetic."""

from tests.texts import text_beside
from tuner.core.problem import Problem
from tuner.payload.cpu import partition, payload_mlir

# Blocks of 32 x 32, k in steps of 16, 4 x 4 elements per thread, so blocks of 8 x 8 threads.
SCRIPT = text_beside(__file__, "SCRIPT")


def gpu_payload(problem: Problem) -> str:
    """Returns the payload of the whole problem."""
    return payload_mlir(problem, partition(problem, 1, "none", 1))


def gpu_script(block: int = 32, depth: int = 16, tile: int = 4) -> str:
    """Returns a script: square blocks, k in steps of ``depth``, ``tile`` x ``tile`` elements per thread."""
    threads = block // tile
    text = SCRIPT.replace("[4, 4]", f"[{tile}, {tile}]").replace("[8, 8, 1]", f"[{threads}, {threads}, 1]")
    text = text.replace("total_num_threads = 64", f"total_num_threads = {threads * threads}")
    return text.replace("[32, 32]", f"[{block}, {block}]").replace("[0, 0, 16]", f"[0, 0, {depth}]")
