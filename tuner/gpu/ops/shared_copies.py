"""Transform ops of shared memory: ``bypass_l1``, ``flat_copies`` (split addresses), ``insert_barriers``."""

import itertools
from collections.abc import Iterable

from tuner.core.errors import Refusal
from tuner.mlir.bindings import Attribute, Block, Op, Value, ir
from tuner.mlir.dialect import InPlaceOp, attribute
from tuner.mlir.ir.building import affine, create, index, plus, reinterpreted, symbol, value
from tuner.mlir.ir.index_terms import without_constant
from tuner.mlir.ir.memrefs import element_bytes, is_workgroup
from tuner.mlir.ir.reading import attributes_of, ops_in, parents_of, walk

BYPASS_BYTES = 16  # PTX: cp.async.cg takes no other size
COPY = "nvgpu.device_async_copy"
READ = "nvgpu.ldmatrix"
SEGMENTS = "operandSegmentSizes"  # of a copy: target, its indices, source, its indices, elements
WRITES = ("vector.transfer_write", "vector.store", "memref.store")
COPIES = ("linalg.copy", "memref.copy")


class BypassL1Op(InPlaceOp, name="bypass_l1"):
    """``tuner.bypass_l1``: asynchronous copies of 16 bytes bypass the L1 cache (PTX: cp.async.cg).

    cp.async.cg has no other size. ``nvgpu.create_async_groups {bypass_l1}`` does the same, but the pipeliner
    drops the attribute where it adds a predicate: run this op after pipelining.

        %t = nvgpu.device_async_copy %a[%i], %tile[%i], 8, %n : memref<64xf16> to memref<64xf16, ...>
      becomes
        %t = nvgpu.device_async_copy %a[%i], %tile[%i], 8, %n {bypassL1} : memref<64xf16> to ...

    The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        for copy in walk(function, "nvgpu.device_async_copy"):
            elements = int(ir.IntegerAttr(copy.attributes["dstElements"]).value)
            if elements * element_bytes(ir.MemRefType(copy.operands[0].type).element_type) == BYPASS_BYTES:
                copy.attributes["bypassL1"] = ir.UnitAttr.get()
        return None


class FlatCopiesOp(InPlaceOp, name="flat_copies"):
    """``tuner.flat_copies``: splits addresses into a stage, a loop-invariant part and a constant.

    Takes a function with asynchronous copies and ``nvgpu.ldmatrix`` of buffers of two or three dimensions.
    Gives each a 1-D view and one index: the stage times its size, plus rows and columns without their
    constants, plus the constants. LLVM then keeps one pointer for all accesses of a tile, with immediate
    offsets; else it adds constants to rows before multiplying them, and each copy has its own 64-bit pointer.
    The stage stays outside of ``affine.apply``, with which canonicalization would merge it.

        %x = nvgpu.ldmatrix %tile[%stage, %row8, %c16] {numTiles = 4 : i32, transpose = false} : ...
      with %row8 = %row + 8 becomes
        %flat = memref.reinterpret_cast %tile to offset: [0], sizes: [1024], strides: [1] : ...
        %inner = affine.apply affine_map<()[s0] -> (s0 * 32)>()[%row]
        %outer = arith.muli %stage, %c512 : index
        %sum = arith.addi %inner, %outer : index
        %at = arith.addi %sum, %c272 : index
        %x = nvgpu.ldmatrix %flat[%at] {numTiles = 4 : i32, transpose = false} : ...

    Run this op after every op that changes addresses, and after common subexpression elimination, so that
    equal parts of addresses are the same SSA value. The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Op) -> Refusal | None:
        views = _FlatViews()
        for copy in walk(function, COPY):
            _, to_rank, _, from_rank, _ = ir.DenseI32ArrayAttr(copy.attributes[SEGMENTS])
            target, *rest = copy.operands
            into = rest[:to_rank]
            (source, *rest) = rest[to_rank:]
            at = rest[:from_rank]
            elements = rest[from_rank:]
            with copy.location, ir.InsertionPoint(copy):
                operands = [
                    views.of(target, copy),
                    flat_index(target, into),
                    views.of(source, copy),
                    flat_index(source, at),
                ]
                segments = ir.DenseI32ArrayAttr.get([1, 1, 1, 1, len(elements)])
                _replace(copy, [*operands, *elements], **{SEGMENTS: segments})
        for read in walk(function, READ):
            buffer, *indices = read.operands
            with read.location, ir.InsertionPoint(read):
                _replace(read, [views.of(buffer, read), flat_index(buffer, indices)])
        return None


def _replace(op: Op, operands: list[Value], **changed: Attribute) -> None:
    attributes = attributes_of(op) | changed
    op.results[0].replace_all_uses_with(value(op.name, op.results[0].type, *operands, **attributes))
    op.erase()


def flat_index(buffer: Value, indices: Iterable[Value]) -> Value:
    """Creates the linear index of ``buffer[indices]``, in elements, without the offset of the memref type.

    Constants in ``indices`` are added last, in one sum.
    """
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    parts = [(*without_constant(position), stride) for position, stride in zip(indices, strides, strict=True)]
    constant = sum(number * stride for _, number, stride in parts)
    # row and column in one affine.apply; a stage's index before them is added
    known = [(base, stride) for base, _, stride in parts[-2:] if base is not None]
    stages = [(base, stride) for base, _, stride in parts[:-2] if base is not None]
    if known:
        terms = [affine(_weighted([stride for _, stride in known]), *(base for base, _ in known))]
    else:
        terms = []
    type_ = ir.IndexType.get()
    terms += [value("arith.muli", type_, base, index(stride)) for base, stride in stages]
    if not terms:
        return index(constant)
    whole, *others = terms
    for other in others:
        whole = value("arith.addi", type_, whole, other)
    return plus(whole, constant)


def _weighted(strides: list[int]) -> ir.AffineExpr:
    whole = symbol(0) * strides[0]
    for number, stride in enumerate(strides[1:], 1):
        whole = whole + symbol(number) * stride
    return whole


class _FlatViews:
    """One 1-D view per buffer: after the buffer's definition, for an argument at the start of the launch."""

    def __init__(self) -> None:
        self._views: dict[tuple[Value, Block], Value] = {}

    def of(self, buffer: Value, user: Op) -> Value:
        if not isinstance(buffer.owner, ir.Block):
            return self._created(buffer, buffer.owner.operation.block, ir.InsertionPoint.after(buffer.owner))
        launches = (parent for parent in parents_of(user) if parent.name == "gpu.launch")
        # in a launch, so that the kernel's own arguments stay whole buffers
        block = next((launch.regions[0].blocks[0] for launch in launches), buffer.owner)
        return self._created(buffer, block, ir.InsertionPoint.at_block_begin(block))

    def _created(self, buffer: Value, block: Block, point: ir.InsertionPoint) -> Value:
        key = (buffer, block)
        if key not in self._views:
            with point:
                memref = ir.MemRefType(buffer.type)
                strides, _ = memref.get_strides_and_offset()
                size = 1 + sum(
                    (length - 1) * stride for length, stride in zip(memref.shape, strides, strict=True)
                )
                flat = ir.MemRefType.get([size], memref.element_type, memory_space=memref.memory_space)
                self._views[key] = reinterpreted(buffer, flat)
        return self._views[key]


class InsertBarriersOp(InPlaceOp, name="insert_barriers"):
    """``tuner.insert_barriers``: barriers between writes of shared memory and other threads' reads.

    Takes a function with ``scf.for`` loops whose bodies directly write shared memory and then read it.
    Inserts a ``gpu.barrier`` after the last write in each such body, and one at its top where requested.

        scf.for %i = %c0 to %c64 step %c4 {
          vector.store %x, %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
          %y = vector.load %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
      with loop_top = 1 becomes
        scf.for %i = %c0 to %c64 step %c4 {
          gpu.barrier
          vector.store %x, %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>
          gpu.barrier
          %y = vector.load %tile[%c4] : memref<4xf32, #gpu.address_space<workgroup>>, vector<2xf32>

    Attribute ``loop_top`` (i64, default 0): 1 also inserts a barrier at the top of the body. That is needed
    where one iteration may still read a tile that the next one writes, unless the loop is pipelined over
    more buffers than its depth. The handle (a func.func) stays valid. Silenceable failure: no such loop.
    """

    def change(self, function: Op) -> Refusal | None:
        loops = [(loop, _writes(loop)) for loop in walk(function, "scf.for")]
        filling = [(loop, writes) for loop, writes in loops if writes]
        if not filling:
            return Refusal(f"found {len(loops)} loops, allowed one that writes shared memory")
        for loop, writes in filling:
            last_write = writes[-1]
            at_top = attribute(self, "loop_top", 0) == 1
            body = list(loop.regions[0].blocks[0].operations)
            after = next(op for before, op in itertools.pairwise(body) if before.operation == last_write)
            with loop.location:
                with ir.InsertionPoint(after):
                    create("gpu.barrier")
                if at_top:
                    with ir.InsertionPoint(body[0]):
                        create("gpu.barrier")
        return None


def _writes(loop: Op) -> list[Op]:
    body = ops_in(loop.regions[0].blocks[0])
    return [
        op for op in body if op.name in WRITES + COPIES and is_workgroup(ir.MemRefType(op.operands[1].type))
    ]
