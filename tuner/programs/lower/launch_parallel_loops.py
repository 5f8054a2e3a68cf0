"""Converts every outermost ``scf.parallel`` of a host function to ``gpu.launch``, one thread per iteration.

Iterations are numbered in row-major order and split into blocks, so that neighbouring threads take neighbours
along the last dimension: their accesses coalesce. Upstream's ``gpu-map-parallel-loops`` maps the first
dimension to neighbouring threads, whose accesses are then a row apart. Loops that reduce to a value stay on
the host.

    scf.parallel (%i) = (%c0) to (%c1000) step (%c1) {
      memref.store %v, %a[%i] : memref<1000xf32>
      scf.reduce
    }
  becomes
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {
      %0 = arith.muli %bx, %c256 : index
      %1 = arith.addi %0, %tx : index
      %2 = arith.cmpi slt, %1, %c1000 : index
      scf.if %2 {
        memref.store %v, %a[%1] : memref<1000xf32>
      }
      gpu.terminator
    }
"""

import math

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Block, Op, Value, ir
from tuner.mlir.rewrite.building import create, index, is_less, value
from tuner.mlir.rewrite.definitions import constant_of
from tuner.mlir.rewrite.launch_operands import SEGMENTS
from tuner.mlir.rewrite.parallel_loops import delinearized
from tuner.mlir.rewrite.walking import parents_of, walk

BLOCK_THREADS = 256
BLOCKS_LIMIT = 2**31 - 1  # of a grid's x dimension: CUDA C programming guide, compute capabilities
# grid and block sizes; no tokens, clusters, dynamic shared memory
LAUNCH_SEGMENTS = [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]


def launch_parallel_loops(function: Op) -> None:
    """Converts each outermost ``scf.parallel`` of a host function to a ``gpu.launch``, in place.

    Each iteration becomes a thread. Loops with results, and loops inside kernels, stay as they are. Raises
    CandidateError(COMPILE) for a number of iterations that is known to exceed the threads of a grid: 256 per
    block, 2**31 - 1 blocks.
    """
    for loop in [each for each in walk(function, "scf.parallel") if _is_outermost(each)]:
        if not loop.results:
            _launch(loop)


def _is_outermost(loop: Op) -> bool:
    return not any(each.name in ("scf.parallel", "gpu.launch") for each in parents_of(loop))


def _launch(loop: Op) -> None:
    rank = len(loop.regions[0].blocks[0].arguments)
    operands = list(loop.operands)
    lows, highs, steps = operands[:rank], operands[rank : 2 * rank], operands[2 * rank : 3 * rank]
    with loop.location, ir.InsertionPoint(loop):
        counts = [_trip_count(*each) for each in zip(lows, highs, steps, strict=True)]
        total = _product(counts)
        one, threads, blocks = index(1), index(BLOCK_THREADS), _blocks(total)
        launch = ir.Operation.create(
            "gpu.launch",
            operands=[blocks, one, one, threads, one, one],
            attributes={SEGMENTS: ir.DenseI32ArrayAttr.get(LAUNCH_SEGMENTS)},
            regions=1,
        )
    types = [ir.IndexType.get()] * 12  # block and thread indices, grid and block sizes
    body = launch.regions[0].blocks.append(*types, arg_locs=[loop.location] * 12)
    with loop.location, ir.InsertionPoint(body):
        number = value("arith.addi", types[0], _times(body.arguments[0], threads), body.arguments[3])
        guard = ir.Operation.create("scf.if", operands=[is_less(number, total)], regions=2)
        create("gpu.terminator")
    inside = guard.regions[0].blocks.append()
    with loop.location, ir.InsertionPoint(inside):
        trips = delinearized(number, counts)
        for trip, low, step, variable in zip(
            trips, lows, steps, loop.regions[0].blocks[0].arguments, strict=True
        ):
            distance = _times(trip, step)
            is_from_zero = constant_of(low) == 0
            variable.replace_all_uses_with(
                distance if is_from_zero else value("arith.addi", types[0], low, distance)
            )
    _move_body(loop, inside)
    loop.erase()


def _move_body(loop: Op, inside: Block) -> None:
    operations = list(loop.regions[0].blocks[0].operations)
    for op in operations[:-1]:  # all but scf.reduce
        inside.append(op.operation)
    with loop.location, ir.InsertionPoint(inside):
        create("scf.yield")


def _trip_count(low: Value, high: Value, step: Value) -> Value:
    known = [constant_of(each) for each in (low, high, step)]
    if all(number is not None for number in known):
        first, last, by = known
        return index(max(0, -(-(last - first) // by)))  # type: ignore[operator]
    distance = value("arith.subi", low.type, high, low)
    return value("arith.maxsi", low.type, _ceil_divided(distance, step), index(0))


def _blocks(total: Value) -> Value:
    """Returns the number of blocks for ``total`` threads, at least one: CUDA refuses an empty grid."""
    known = constant_of(total)
    if known is not None:
        if known > BLOCK_THREADS * BLOCKS_LIMIT:
            limit = BLOCK_THREADS * BLOCKS_LIMIT
            raise CandidateError(
                Stage.COMPILE, f"payload: found {known} parallel iterations, allowed {limit}"
            )
        return index(max(1, -(-known // BLOCK_THREADS)))
    return value("arith.maxsi", total.type, _ceil_divided(total, index(BLOCK_THREADS)), index(1))


def _ceil_divided(whole: Value, size: Value) -> Value:
    """Returns ``whole / size``, rounded up; 0 or less where ``whole`` is not positive."""
    last = value("arith.subi", whole.type, size, index(1))
    return value("arith.divsi", whole.type, value("arith.addi", whole.type, whole, last), size)


def _product(counts: list[Value]) -> Value:
    known = [constant_of(each) for each in counts]
    if all(number is not None for number in known):
        return index(math.prod(known))  # type: ignore[arg-type]
    total = counts[0]
    for count in counts[1:]:
        total = _times(total, count)
    return total


def _times(left: Value, right: Value) -> Value:
    return left if constant_of(right) == 1 else value("arith.muli", left.type, left, right)
