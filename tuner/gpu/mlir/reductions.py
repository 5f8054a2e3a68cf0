"""Expands ``gpu.all_reduce`` and ``gpu.subgroup_reduce`` into shuffles, also in loops and branches.

Takes outlined kernels; upstream's pattern splits the block, which ``scf`` ops do not allow. A warp reduces by
a butterfly of shuffles; threads missing in the last warp are left out. For a block, the first warp reduces
the results of all warps: two barriers, and a slot for the total next to the slots of the warps, so that the
next iteration of a loop overwrites nothing that a thread still reads.

    %sum = gpu.all_reduce add %x uniform {
  becomes, at its end
    gpu.barrier
    %sum = memref.load %partial[%c32] : memref<33xf32, #gpu.address_space<workgroup>>
"""

import math
from collections.abc import Callable

from tuner.core.gpu import WARP_THREADS
from tuner.gpu.ir.warps import shuffled
from tuner.gpu.mlir.thread_ids import linear_thread, threads_of_block
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import branch, create, index, is_equal, is_less, value
from tuner.mlir.ir.reading import ops_in, unsupported, walk

Combine = Callable[[Value, Value], Value]
TOTAL = WARP_THREADS  # slot of the total, after the slots of at most 32 warps
KNOWN_SIZE = "known_block_size"  # attribute of gpu.func: threads along x, y, z


def expand_reductions(module: ir.Module) -> None:
    """Replaces ``gpu.all_reduce`` and ``gpu.subgroup_reduce`` in all kernels by shuffles, in place.

    Raises CandidateError(COMPILE) for a region with control flow.
    """
    for function in walk(module, "gpu.func"):
        for op in walk(function, "gpu.all_reduce"):
            _replace(op, _of_block(op, _has_whole_warps(function)))
        for op in walk(function, "gpu.subgroup_reduce"):
            _replace(op, _of_subgroup(op, _has_whole_warps(function)))


def _replace(op: Op, build: Callable[[], Value]) -> None:
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(build())
    op.erase()


def _of_block(op: Op, is_whole: bool) -> Callable[[], Value]:
    combine = _combination(op)
    type_ = op.results[0].type
    partial_type = ir.Type.parse(f"memref<{TOTAL + 1}x{type_}, #gpu.address_space<workgroup>>")

    def build() -> Value:
        thread = linear_thread()
        threads = threads_of_block()
        lane = _divided("remui", thread, WARP_THREADS)
        warp = _divided("divui", thread, WARP_THREADS)
        partial = value("memref.alloc", partial_type, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))
        width = None if is_whole else _lanes(threads, warp)
        of_warp = _butterfly(op.operands[0], combine, lane, width, WARP_THREADS)
        _store_by_first_lane(lane, of_warp, partial, warp)
        create("gpu.barrier")
        warps = _divided("ceildivui", threads, WARP_THREADS)
        branch(is_equal(warp, index(0)), lambda: _reduce_partials(partial, combine, lane, warps))
        create("gpu.barrier")
        return value("memref.load", type_, partial, index(TOTAL))

    return build


def _reduce_partials(partial: Value, combine: Combine, lane: Value, warps: Value) -> None:
    """Reduces the partial results of the warps in the first warp; its first thread stores the total."""
    type_ = partial.type.element_type
    last = value("arith.subi", lane.type, warps, index(1))
    # lanes beyond the last warp read its slot again; _partners ignores them
    own = value("memref.load", type_, partial, value("arith.minui", lane.type, lane, last))
    total = _partners(own, combine, lane, warps, _distances(WARP_THREADS, 1))
    _store_by_first_lane(lane, total, partial, index(TOTAL))


def _store_by_first_lane(lane: Value, number: Value, partial: Value, slot: Value) -> None:
    def store() -> None:
        create("memref.store", [], [number, partial, slot])

    branch(is_equal(lane, index(0)), store)


def _of_subgroup(op: Op, is_whole: bool) -> Callable[[], Value]:
    combine = _combination(op)
    size = _integer(op, "cluster_size") or WARP_THREADS
    stride = _integer(op, "cluster_stride") or 1

    def reduced(part: Value) -> Value:
        thread = linear_thread()
        lane = _divided("remui", thread, WARP_THREADS)
        warp = _divided("divui", thread, WARP_THREADS)
        width = None if is_whole else _lanes(threads_of_block(), warp)
        return _butterfly(part, combine, lane, width, size, stride)

    def build() -> Value:
        whole = op.operands[0]
        if not isinstance(whole.type, ir.VectorType):
            return reduced(whole)
        element = whole.type.element_type
        result = whole
        for number in range(math.prod(whole.type.shape)):
            position = {"static_position": ir.DenseI64ArrayAttr.get([number])}
            part = value("vector.extract", element, whole, **position)
            result = value("vector.insert", whole.type, reduced(part), result, **position)
        return result

    return build


def _butterfly(
    own: Value, combine: Combine, lane: Value, width: Value | None, size: int, stride: int = 1
) -> Value:
    """Creates the reduction of the values of each cluster of ``size`` lanes.

    Returns the result, for every lane. Lanes of a cluster are ``stride`` apart; lanes from ``width`` on, if
    given, do not take part. The first lane of a cluster always gets the whole result, and sends it to the
    other lanes.
    """
    result = _partners(own, combine, lane, width, _distances(size, stride))
    if width is None or size == 1:
        return result
    first = value("arith.andi", lane.type, lane, index(~((size - 1) * stride) % WARP_THREADS))
    return _shuffled(result, "idx", first)


def _partners(own: Value, combine: Combine, lane: Value, width: Value | None, distances: list[int]) -> Value:
    for distance in distances:
        other = _shuffled(own, "xor", index(distance))
        both = combine(own, other)
        if width is not None:
            partner = value("arith.xori", lane.type, lane, index(distance))
            both = value("arith.select", own.type, is_less(partner, width), both, own)
        own = both
    return own


def _shuffled(own: Value, mode: str, source: Value) -> Value:
    number = ir.IntegerType.get_signless(32)
    offset = value("arith.index_castui", number, source)
    return shuffled(mode, own, offset)


def _combination(op: Op) -> Combine:
    """Returns the function that creates the combination of two values, by the op's region or its name.

    Raises CandidateError(COMPILE) for a region with control flow.
    """
    region = op.regions[0] if len(op.regions) else None
    if region is None or len(region.blocks) == 0:
        name = str(op.attributes["op"]).rstrip(">").split()[-1]
        type_ = op.results[0].type
        element = type_.element_type if isinstance(type_, ir.VectorType) else type_
        if name in ("add", "mul", "and", "or", "xor"):  # other names include the type: minsi, maxnumf
            name += "f" if isinstance(element, ir.FloatType) else "i"
        return lambda left, right: value(f"arith.{name}", left.type, left, right)
    if len(region.blocks) > 1:
        raise unsupported(op, "control flow in its region", "a region of one block")

    def by_region(left: Value, right: Value) -> Value:
        # clones the op at the insertion point, moves its region's operations before it, drops the clone
        block = op.clone().regions[0].blocks[0]
        clone = block.arguments[0].owner.owner
        for argument, operand in zip(block.arguments, (left, right), strict=True):
            argument.replace_all_uses_with(operand)
        *inner, last = ops_in(block)
        for inner_op in inner:
            inner_op.move_before(clone)
        result = last.operands[0]
        clone.erase()
        return result

    return by_region


def _distances(size: int, stride: int) -> list[int]:
    return [stride << step for step in range(size.bit_length() - 1)]


def _lanes(threads: Value, warp: Value) -> Value:
    """Creates the number of threads of the block from this warp on; 32 or more: the warp is full."""
    before = value("arith.muli", warp.type, warp, index(WARP_THREADS))
    return value("arith.subi", warp.type, threads, before)


def _divided(name: str, number: Value, size: int) -> Value:
    return value(f"arith.{name}", number.type, number, index(size))


def _integer(op: Op, name: str) -> int | None:
    if name in op.attributes:
        return int(ir.IntegerAttr(op.attributes[name]).value)
    return None


def _has_whole_warps(function: Op) -> bool:
    if KNOWN_SIZE not in function.attributes:
        return False
    threads = math.prod(map(int, ir.DenseI32ArrayAttr(function.attributes[KNOWN_SIZE])))
    return threads % WARP_THREADS == 0
