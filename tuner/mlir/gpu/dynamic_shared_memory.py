"""Packs a kernel's shared memory into one dynamic block, whose size the launch requests.

Takes outlined kernels; ``memref.alloc`` in workgroup memory and workgroup attributions become views of
``gpu.dynamic_shared_memory``, and launches request the bytes. Buffers that barriers separate in time share
bytes (``shared_lifetimes.py``, ``shared_memory_packing.py``). Dynamic shared memory that the kernel itself
addresses (``custom_shared_views.py``) precedes them. Static shared memory is limited to 48 KiB, dynamic is
not. Not handled: buffers of dynamic sizes, layouts other than row-major; both are errors.

    gpu.launch_func @m::@k blocks in (...) threads in (...) args(%g : memref<256xf32>)
    %a = memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
  becomes, where both are in use at one time
    gpu.launch_func @m::@k ... dynamic_shared_memory_size %c2048_i32 args(%g : memref<256xf32>)
    %block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %a = memref.view %block[%c0][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
    %b = memref.view %block[%c1024][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
"""

from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.gpu.custom_shared_views import BLOCK_TYPE, DYNAMIC, custom_shared_views, reserved_bytes
from tuner.mlir.gpu.shared_lifetimes import SharedMemoryLiveness
from tuner.mlir.gpu.shared_memory_packing import AllocationRequest, align, first_fit_offsets, total_bytes
from tuner.mlir.gpu.tensor_maps import box_alignment_bytes
from tuner.mlir.rewrite.building import index, value
from tuner.mlir.rewrite.launch_operands import launches_of, set_shared_bytes, shared_bytes_operand
from tuner.mlir.rewrite.located_error import location_of
from tuner.mlir.rewrite.symbols import function_type, name_of
from tuner.mlir.rewrite.type_sizes import is_row_major, is_workgroup, memref_bytes
from tuner.mlir.rewrite.walking import walk

# 4 bytes in each of the 32 banks: a tile starts at bank 0. Also enough for 16-byte copies and ldmatrix.
ALIGNMENT_BYTES = 128


@dataclass(frozen=True)
class SharedBlock:
    """Size and alignment in bytes of a kernel's dynamic shared memory; the least size if set at run time."""

    kernel: str
    bytes: int
    alignment_bytes: int


def use_dynamic_shared_memory(module: ir.Module, limit_bytes: int) -> tuple[SharedBlock, ...]:
    """Packs the shared memory of each kernel into one dynamic block; returns the block of each kernel.

    Allocations in workgroup memory and workgroup attributions become views of ``gpu.dynamic_shared_memory``,
    and launches request the bytes; both in place. Raises CandidateError: RESOURCES for a kernel that needs
    more than ``limit_bytes`` or a launch that requests too little, COMPILE for a buffer that is not static
    and row-major, and for a launch without a request where it is not known how much the kernel's own views
    need (``CustomSharedViews.unbounded``).
    """
    blocks = []
    for function in walk(module, "gpu.func"):
        block = _rewrite(module, function)
        if block.bytes > limit_bytes:
            found = f"found {block.bytes} bytes, allowed {limit_bytes}"
            place = location_of(function)
            raise CandidateError(Stage.RESOURCES, f"shared memory of {block.kernel}: {found} ({place})")
        blocks.append(block)
    return tuple(blocks)


def attributions_of(function: Op) -> list[Value]:
    """Returns the workgroup attributions of a ``gpu.func``: the block arguments that are shared memory."""
    arguments = list(function.regions[0].blocks[0].arguments)
    first = len(function_type(function).inputs)
    return arguments[first : first + _attribution_count(function)]


def _rewrite(module: ir.Module, function: Op) -> SharedBlock:
    """Packs the shared memory of one kernel, and sets the sizes of its launches.

    Bytes that launches request already stay at the start of the block. Where their number is known only at
    run time, they follow the buffers instead.
    """
    name = name_of(function)
    least = max(ALIGNMENT_BYTES, box_alignment_bytes(function))
    launches = launches_of(module, name)
    views = custom_shared_views(function)
    reserved = {launch: reserved_bytes(launch, views) for launch in launches}
    is_known = None not in reserved.values()
    before = max((size or 0 for size in reserved.values()), default=0) if is_known else 0
    buffers = [*attributions_of(function), *_allocations(function)]
    if not buffers:
        if is_known and before:
            _set_sizes(launches, before)
        return SharedBlock(name, before or views.bytes, least)
    requests = tuple(_request(name, buffer, least) for buffer in buffers)
    liveness = SharedMemoryLiveness(function)
    lifetimes = [liveness.lifetime(buffer) for buffer in buffers]
    start = align(before, least)
    offsets = first_fit_offsets(requests, lambda i, j: lifetimes[i].overlaps(lifetimes[j]), start)
    total = total_bytes(requests, offsets)
    alignment_bytes = max(request.alignment_bytes for request in requests)
    own = walk(function, DYNAMIC)
    _replace(function, buffers, offsets)
    _drop_attributions(function)
    if is_known:
        _set_sizes(launches, total)
        return SharedBlock(name, total, alignment_bytes)
    behind = align(total, least)
    for op in own:
        _move_after(op, behind)
    for launch in launches:
        set_shared_bytes(launch, behind, shared_bytes_operand(launch))
    return SharedBlock(name, behind + views.bytes, alignment_bytes)


def _set_sizes(launches: list[Op], size: int) -> None:
    for launch in launches:
        set_shared_bytes(launch, size)


def _move_after(op: Op, shift: int) -> None:
    """Moves the start of a kernel's ``gpu.dynamic_shared_memory`` by ``shift`` bytes."""
    with op.location, ir.InsertionPoint(op):
        whole = op.clone().results[0]
        at, none = index(shift), index(0)
        size = value("arith.subi", at.type, value("memref.dim", at.type, whole, none), at)
        rest = value("memref.view", whole.type, whole, at, size)
    op.results[0].replace_all_uses_with(rest)
    op.erase()


def _allocations(function: Op) -> list[Value]:
    return [
        op.results[0]
        for kind in ("memref.alloc", "memref.alloca")
        for op in walk(function, kind)
        if is_workgroup(ir.MemRefType(op.results[0].type))
    ]


def _attribution_count(function: Op) -> int:
    name = "workgroup_attributions"
    return int(ir.IntegerAttr(function.attributes[name]).value) if name in function.attributes else 0


def _request(kernel: str, buffer: Value, least_alignment_bytes: int) -> AllocationRequest:
    memref = ir.MemRefType(buffer.type)
    if not memref.has_static_shape or not is_row_major(memref):
        owner = buffer.owner if isinstance(buffer, ir.OpResult) else buffer.owner.owner
        found = f"found {memref}, allowed a static shape in row-major order"
        raise CandidateError(
            Stage.COMPILE, f"shared memory of {kernel}: {found} ({location_of(owner.operation)})"
        )
    asked = 0
    if isinstance(buffer, ir.OpResult) and "alignment" in buffer.owner.attributes:
        asked = ir.IntegerAttr(buffer.owner.attributes["alignment"]).value
    return AllocationRequest(memref_bytes(memref), max(least_alignment_bytes, asked))


def _replace(function: Op, buffers: list[Value], offsets: tuple[int, ...]) -> None:
    """Creates the views at the start of the kernel; erases last, as an allocation may be its first op."""
    with function.location, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        block = value(DYNAMIC, ir.Type.parse(BLOCK_TYPE))
        for buffer, offset in zip(buffers, offsets, strict=True):
            view = value("memref.view", buffer.type, block, index(offset))
            _erase_deallocations(buffer)
            buffer.replace_all_uses_with(view)
    for buffer in buffers:
        if isinstance(buffer, ir.OpResult):
            buffer.owner.erase()


def _erase_deallocations(buffer: Value) -> None:
    for use in list(buffer.uses):
        if use.owner.operation.name == "memref.dealloc":
            use.owner.operation.erase()


def _drop_attributions(function: Op) -> None:
    block = function.regions[0].blocks[0]
    for argument in reversed(attributions_of(function)):
        block.erase_argument(argument.arg_number)
    for name in ("workgroup_attributions", "workgroup_attrib_attrs"):
        if name in function.attributes:
            del function.attributes[name]
