"""Converts the work of a program on buffers to GPU kernels; keeps their MLIR for the interpreter.

``launch_kernels`` converts all work: matmuls by their scripts, and loops by ``launch_parallel_loops``.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce

from tuner.core.device_programs import MatmulKernel
from tuner.core.dtypes import IEEE
from tuner.core.errors import CandidateError, Stage
from tuner.core.gpu import Chip
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.gpu.interpreter.kernels import decode_kernel
from tuner.gpu.lowering.matmul_launches import insert_gpu_kernels
from tuner.gpu.mlir.lowering import outline_launches
from tuner.gpu.streams.async_ops import is_filled_by_runtime
from tuner.gpu.streams.gpux import lower_tokens
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.effects.aliases import ASYNC, is_token, roots_of
from tuner.mlir.effects.launches import SEGMENTS
from tuner.mlir.ir import building
from tuner.mlir.ir.building import DYNAMIC, branch, create, delinearized, index, is_less, size_of, value
from tuner.mlir.ir.building import total as total_of
from tuner.mlir.ir.memrefs import contiguous_dimensions, is_contiguous
from tuner.mlir.ir.reading import constant_of, copy_of, name_of, op_of, ops_in, parents_of, walk
from tuner.mlir.passes import run_passes
from tuner.mlir.programs.entry import reject_linalg
from tuner.mlir.programs.matmuls import find_matmuls
from tuner.mlir.programs.payload import ProgramPayload

LAUNCHES = ("gpu.launch", "gpu.launch_func")
BLOCK_THREADS = 256
BLOCKS_LIMIT = 2**31 - 1  # of a grid's x dimension: CUDA C programming guide, compute capabilities
# grid and block sizes; no tokens, clusters, dynamic shared memory
LAUNCH_SEGMENTS = [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
LOWER_AFFINE = "builtin.module(lower-affine)"
TO_PARALLEL = (
    "builtin.module(func.func(convert-linalg-to-parallel-loops,scf-forall-to-parallel),"
    "lower-affine,canonicalize,cse)"
)
MAPPING = "mapping"  # attribute that maps a loop to blocks and threads: #gpu.loop_dim_map
MAPPED_TO_LAUNCHES = "builtin.module(func.func(convert-parallel-loops-to-gpu),lower-affine,canonicalize,cse)"
STREAM_COPY = "gpux.memcpy"
Copy = Callable[[Value, Value], object]  # builds the copy of a part; operands: target, source


def make_host_loops(function: Op) -> int:
    """Rewrites each ``scf.parallel`` around GPU launches to nested ``scf.for``, in place.

    Returns the number of rewritten loops. They cannot become kernels, since a kernel launches no other
    kernel. Loops with results stay.
        scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
          gpu.launch ...
          scf.reduce
        }
      becomes
        scf.for %i = %c0 to %c8 step %c1 {
          gpu.launch ...
        }
    """
    loops = [loop for loop in walk(function, "scf.parallel") if walk(loop, *LAUNCHES) and not loop.results]
    for loop in loops:
        old = loop.regions[0].blocks[0]
        rank = len(old.arguments)
        bounds = list(loop.operands)
        before = loop
        for number in range(rank):
            with loop.location, ir.InsertionPoint(before):
                sequential = ir.Operation.create("scf.for", operands=bounds[number::rank], regions=1)
            body = sequential.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[loop.location])
            with loop.location, ir.InsertionPoint(body):
                before = create("scf.yield")
            old.arguments[number].replace_all_uses_with(body.arguments[0])
        for op in ops_in(old)[:-1]:  # all but scf.reduce
            op.move_before(before)
        loop.erase()
    return len(loops)


def launch_parallel_loops(function: Op) -> None:
    """Converts each outermost ``scf.parallel`` of a host function to a ``gpu.launch``, in place.

    Iterations are threads, in row-major order. Neighbouring threads take neighbours along the last dimension,
    so accesses coalesce, unlike those of upstream's ``gpu-map-parallel-loops``. Loops with results, and loops
    in kernels, stay. Raises CandidateError(COMPILE) for a known number of iterations above a grid's threads.
        scf.parallel (%i) = (%c0) to (%c1000) step (%c1) {
          memref.store %v, %a[%i] : memref<1000xf32>
          scf.reduce
        }
      becomes
        gpu.launch blocks(%bx, ...) in (%gx = %c4, ...) threads(%tx, ...) in (%sx = %c256, ...) {
          %0 = arith.muli %bx, %c256 : index
          %1 = arith.addi %0, %tx : index
          %2 = arith.cmpi slt, %1, %c1000 : index
          scf.if %2 {
            memref.store %v, %a[%1] : memref<1000xf32>
          }
          gpu.terminator
        }
    """
    around = {"scf.parallel", "gpu.launch"}
    for loop in walk(function, "scf.parallel"):
        if not loop.results and around.isdisjoint(parent.name for parent in parents_of(loop)):
            _launch(loop)


def create_launch(blocks: Value, threads: Value, one: Value, build: Callable[[Value, Value], None]) -> None:
    """Creates a ``gpu.launch`` of a one-dimensional grid of one-dimensional blocks at the insertion point.

    ``blocks``, ``threads``: the sizes of the grid and of a block. ``one``: the constant 1. ``build(block,
    thread)`` creates the body from the index of the block and of the thread in it.
    """
    location = ir.Location.current
    launch = ir.Operation.create(
        "gpu.launch",
        operands=[blocks, one, one, threads, one, one],
        attributes={SEGMENTS: ir.DenseI32ArrayAttr.get(LAUNCH_SEGMENTS)},
        regions=1,
    )
    types = [ir.IndexType.get()] * 12  # block and thread indices, grid and block sizes
    body = launch.regions[0].blocks.append(*types, arg_locs=[location] * 12)
    with ir.InsertionPoint(body):
        build(body.arguments[0], body.arguments[3])
        create("gpu.terminator")


def _launch(loop: Op) -> None:
    block = loop.regions[0].blocks[0]
    rank = len(block.arguments)
    operands = list(loop.operands)
    lows = operands[:rank]
    highs = operands[rank : 2 * rank]
    steps = operands[2 * rank : 3 * rank]

    def thread(block_number: Value, number_in_block: Value) -> None:
        number = total_of(_times(block_number, threads), number_in_block)
        branch(is_less(number, total), lambda: iteration(number))

    def iteration(number: Value) -> None:
        for trip, low, step, variable in zip(
            delinearized(number, counts), lows, steps, block.arguments, strict=True
        ):
            distance = _times(trip, step)
            variable.replace_all_uses_with(distance if constant_of(low) == 0 else total_of(low, distance))
        for op in list(block.operations)[:-1]:  # all but scf.reduce
            ir.InsertionPoint.current.block.append(op.operation)

    with loop.location, ir.InsertionPoint(loop):
        counts = [_trip_count(*bounds) for bounds in zip(lows, highs, steps, strict=True)]
        total = _product(counts)
        one = index(1)
        threads = index(BLOCK_THREADS)
        create_launch(_blocks(total), threads, one, thread)
    loop.erase()


def _trip_count(low: Value, high: Value, step: Value) -> Value:
    first, last, by = map(constant_of, (low, high, step))
    if first is not None and last is not None and by is not None:
        return index(max(0, -(-(last - first) // by)))
    distance = value("arith.subi", low.type, high, low)
    return value("arith.maxsi", low.type, _ceil_divided(distance, step), index(0))


def _blocks(total: Value) -> Value:
    """Creates the number of blocks for ``total`` threads, at least one: CUDA refuses an empty grid.

    Raises CandidateError(COMPILE) for a known number above a grid's threads.
    """
    known = constant_of(total)
    if known is None:
        return value("arith.maxsi", total.type, _ceil_divided(total, index(BLOCK_THREADS)), index(1))
    limit = BLOCK_THREADS * BLOCKS_LIMIT
    if known > limit:
        raise CandidateError(Stage.COMPILE, f"payload: found {known} parallel iterations, allowed {limit}")
    return index(max(1, -(-known // BLOCK_THREADS)))


def _ceil_divided(whole: Value, size: Value) -> Value:
    """Creates ``whole / size``, rounded up; 0 or less where ``whole`` is not positive."""
    last = value("arith.subi", whole.type, size, index(1))
    return value("arith.divsi", whole.type, value("arith.addi", whole.type, whole, last), size)


def _product(counts: list[Value]) -> Value:
    known = [number for count in counts if (number := constant_of(count)) is not None]
    if len(known) == len(counts):
        return index(math.prod(known))
    return reduce(_times, counts)


def _times(left: Value, right: Value) -> Value:
    if constant_of(right) == 1:
        return left
    return value("arith.muli", left.type, left, right)


def reference_kernels(module: ir.Module, left_out: frozenset[str]) -> str:
    """Returns the MLIR text of a module's kernels that the interpreter supports, except ``left_out``.

    Returns "" if there are none. The interpreter computes from this text what the compiled kernels should
    compute. ``module``, whose kernels are not outlined yet, is not changed.
    """
    copy = copy_of(module)
    outline_launches(copy)
    run_passes(copy, LOWER_AFFINE)
    is_kept = False
    for kernel in walk(copy, "gpu.func"):
        if name_of(kernel) in left_out or not _is_known(kernel):
            kernel.erase()
        else:
            is_kept = True
    for op in list(copy.body.operations):
        if op.operation.name != "gpu.module":
            op.operation.erase()
    if is_kept:
        return str(copy.operation.get_asm(enable_debug_info=True))
    return ""


def _is_known(kernel: Op) -> bool:
    try:
        decode_kernel(kernel)
    except CandidateError:
        return False
    return True


def launch_kernels(
    payload: ProgramPayload, scripts: dict[Problem, Script], chip: Chip, math: str = IEEE
) -> tuple[MatmulKernel, ...]:
    """Converts a payload's linalg operations and parallel loops to launches of GPU kernels, in place.

    Matmuls with a script become the script's kernels; other work gets one thread per element. ``math``: how
    f32 is multiplied in the problems of ``scripts``. Returns the kernels whose single launch computes a whole
    matmul. Raises CandidateError for a script that fails, and CandidateError(COMPILE) for an operation that
    cannot be lowered to loops.
    """
    matches = [match for match in find_matmuls(payload, math) if match.problem in scripts]
    matmuls = insert_gpu_kernels(payload.module, matches, scripts, chip)
    launch_loops(payload)
    return matmuls


def launch_loops(payload: ProgramPayload) -> None:
    """Converts linalg operations and parallel loops to launches of one thread per element, in place.

    Loops that have a ``mapping`` to blocks and threads become launches by this mapping. Raises
    CandidateError(COMPILE) for an operation that cannot be lowered to loops.
    """
    copy_by_contiguous_parts(payload.function)
    run_passes(payload.module, TO_PARALLEL)
    make_host_loops(payload.function)
    if any(MAPPING in loop.attributes for loop in walk(payload.function, "scf.parallel")):
        run_passes(payload.module, MAPPED_TO_LAUNCHES)
    launch_parallel_loops(payload.function)
    run_passes(payload.module, "builtin.module(canonicalize,cse)")
    reject_linalg(payload.function)


# Copies and fills that the runtime has no call for: of memory with gaps, and fills of 8 and 64 bits.


def copy_by_contiguous_parts(function: Op) -> None:
    """Rewrites copies and fills of device memory that MLIR's GPU runtime has no call for, in place.

    A copy of non-contiguous memory becomes copies of contiguous parts, or, between two device buffers, a
    loop, which is later outlined into a kernel, as is a fill of other than 16 or 32 bits or of non-contiguous
    memory. A replaced operation's token becomes that of a ``gpu.wait``. A ``gpux.memcpy`` becomes a copy per
    part on the same stream. Unranked memrefs stay. Raises CandidateError(COMPILE) for invalid tokens of GPUX.

        gpu.memcpy %a, %b : memref<4x2xf32, strided<[8, 1]>>, memref<4x2xf32>
      becomes
        scf.for %i = %c0 to %c4 step %c1 {
          %s = memref.subview %a[%i, 0] [1, 2] [1, 1] : ...
          %t = memref.subview %b[%i, 0] [1, 2] [1, 1] : ...
          gpu.memcpy %s, %t : ...
    """
    for op in walk(function, "gpu.memcpy"):
        target, source = _buffers(op)
        if not _has_gaps(target, source):
            continue
        with op.location, ir.InsertionPoint(op):
            # a kernel can access both only if both are certainly device memory
            if all(op_of(root, "gpu.alloc") for buffer in (target, source) for root in roots_of(buffer)):
                building.copy(source, target)
            else:
                _copy_in_parts(target, source, partial(_copy_part, "gpu.memcpy", ()))
            _hand_on_token(op)
        op.erase()
    # a copy per part has no single token: tokens become events first, which recreates the copies
    if _stream_copies_with_gaps(function):
        lower_tokens(function)
    for op in _stream_copies_with_gaps(function):
        stream, target, source = op.operands
        with op.location, ir.InsertionPoint(op):
            _copy_in_parts(target, source, partial(_copy_part, STREAM_COPY, (stream,)))
        op.erase()
    for op in walk(function, "gpu.memset"):
        target, number = _buffers(op)
        if _is_ranked(target) and not is_filled_by_runtime(target.type):
            with op.location, ir.InsertionPoint(op):
                building.fill(target, number)
                _hand_on_token(op)
            op.erase()


def _stream_copies_with_gaps(function: Op) -> list[Op]:
    return [op for op in walk(function, STREAM_COPY) if _has_gaps(*list(op.operands)[-2:])]


def _copy_part(name: str, before: Sequence[Value], target: Value, source: Value) -> None:
    create(name, [], [*before, target, source])


def _copy_in_parts(target: Value, source: Value, copy: Copy, indices: Sequence[Value] = ()) -> None:
    """Builds loops around the copies of contiguous parts, inside of loops whose indices are ``indices``."""
    dimensions = min(contiguous_dimensions(target.type), contiguous_dimensions(source.type))
    if len(indices) == target.type.rank - dimensions:
        copy(_part(target, indices), _part(source, indices))
        return
    building.for_each(
        0,
        size_of(target, len(indices)),
        lambda number: _copy_in_parts(target, source, copy, (*indices, number)),
    )


def _part(buffer: Value, indices: Sequence[Value]) -> Value:
    type_ = buffer.type
    outer = len(indices)
    inner = list(range(outer, type_.rank))
    strides = type_.get_strides_and_offset()[0]
    sizes = [size_of(buffer, number) for number in inner if type_.is_dynamic_dim(number)]
    shape = [DYNAMIC if type_.is_dynamic_dim(number) else type_.shape[number] for number in inner]
    layout = ir.StridedLayoutAttr.get(DYNAMIC, [strides[number] for number in inner])
    result = ir.MemRefType.get(shape, type_.element_type, layout=layout, memory_space=type_.memory_space)
    return value(
        "memref.subview",
        result,
        *[buffer, *indices, *sizes],
        static_offsets=ir.DenseI64ArrayAttr.get([DYNAMIC] * outer + [0] * len(inner)),
        static_sizes=ir.DenseI64ArrayAttr.get([1] * outer + shape),
        static_strides=ir.DenseI64ArrayAttr.get([1] * type_.rank),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, outer, len(sizes), 0]),
    )


def _hand_on_token(op: Op) -> None:
    for result in filter(is_token, op.results):
        tokens = list(filter(is_token, op.operands))
        waited = create("gpu.wait", [ir.Type.parse(ASYNC)], tokens).results[0]
        result.replace_all_uses_with(waited)


def _buffers(op: Op) -> list[Value]:
    return [operand for operand in op.operands if not is_token(operand)]


def _has_gaps(target: Value, source: Value) -> bool:
    return _is_ranked(target, source) and not (is_contiguous(target.type) and is_contiguous(source.type))


def _is_ranked(*buffers: Value) -> bool:
    return all(isinstance(buffer.type, ir.MemRefType) for buffer in buffers)
