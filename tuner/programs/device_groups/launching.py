"""Creates ``gpu.launch`` with a body that a function builds, at the current insertion point.

Grids and blocks have one dimension; sizes are constants.
"""

import math
from collections.abc import Callable, Sequence

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Value, ir
from tuner.mlir.rewrite.building import branch, create, index, is_less, value
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.parallel_loops import delinearized
from tuner.programs.lower.launch_parallel_loops import BLOCK_THREADS, BLOCKS_LIMIT, LAUNCH_SEGMENTS

Build = Callable[[Value, Value], None]  # of a block's number and a thread's number in it


def launch(blocks: int, threads: int, build: Build) -> None:
    """Creates a launch of ``blocks`` blocks of ``threads`` threads; ``build`` creates its body.

    Raises CandidateError(COMPILE) for more blocks than a grid has.
    """
    if blocks > BLOCKS_LIMIT:
        raise CandidateError(Stage.COMPILE, f"found {blocks} thread blocks, allowed {BLOCKS_LIMIT}")
    one = index(1)
    made = ir.Operation.create(
        "gpu.launch",
        operands=[index(blocks), one, one, index(threads), one, one],
        attributes={SEGMENTS: ir.DenseI32ArrayAttr.get(LAUNCH_SEGMENTS)},
        regions=1,
    )
    place = ir.Location.unknown()
    body = made.regions[0].blocks.append(*[ir.IndexType.get()] * 12, arg_locs=[place] * 12)
    with place, ir.InsertionPoint(body):
        build(body.arguments[0], body.arguments[3])
        create("gpu.terminator")


def launch_for_each(shape: Sequence[int], build: Callable[[list[Value]], None]) -> None:
    """Creates a launch of one thread for each element of an array; ``build(indices)`` creates its body.

    Neighbouring threads have neighbours along the last dimension.
    """
    total = math.prod(shape)

    def thread(block: Value, number_in_block: Value) -> None:
        kind = ir.IndexType.get()
        first = value("arith.muli", kind, block, index(BLOCK_THREADS))
        number = value("arith.addi", kind, first, number_in_block)
        sizes = [index(size) for size in shape]
        branch(is_less(number, index(total)), lambda: build(delinearized(number, sizes)))

    launch(max(1, -(-total // BLOCK_THREADS)), BLOCK_THREADS, thread)
