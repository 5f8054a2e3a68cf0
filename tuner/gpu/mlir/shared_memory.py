"""The shared memory of kernels, packed into one dynamic block, whose size the launch requests.

``use_dynamic_shared_memory`` is the pass: it finds when each buffer is in use (``SharedMemoryLiveness``),
gives the buffers offsets (``first_fit_offsets``), and adds what the script itself views (``reserved_bytes``).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tuner.core.errors import CandidateError, Stage
from tuner.gpu.ir.launches import set_shared_bytes, shared_bytes_operand
from tuner.gpu.mlir.tensor_maps import box_alignment_bytes
from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.aliases import VIEWS
from tuner.mlir.effects.launches import launches_of
from tuner.mlir.ir.building import index, value
from tuner.mlir.ir.memrefs import is_row_major, is_workgroup, memref_bytes
from tuner.mlir.ir.reading import constant_of, function_type, location_of, name_of, ops_in, walk

DYNAMIC_SHARED = "gpu.dynamic_shared_memory"
BLOCK_TYPE = "memref<?xi8, #gpu.address_space<workgroup>>"
SYMBOL_PREFIX = "__dynamic_shmem__"  # the name that convert-gpu-to-nvvm gives
# Ops whose accesses are complete when the op is.
SYNCHRONOUS = frozenset(
    {
        *("memref.load", "memref.store", "memref.atomic_rmw", "memref.dealloc"),
        *("vector.load", "vector.store", "vector.maskedload", "vector.maskedstore"),
        *("vector.transfer_read", "vector.transfer_write"),
        *("nvgpu.ldmatrix", "gpu.subgroup_mma_load_matrix", "gpu.subgroup_mma_store_matrix"),
    }
)
ALWAYS = math.inf
# 4 bytes in each of the 32 banks: a tile starts at bank 0. Also enough for 16-byte copies and ldmatrix.
ALIGNMENT_BYTES = 128


@dataclass(frozen=True)
class CustomSharedViews:
    """The least dynamic shared memory, in ``bytes``, that the views in a kernel's body need.

    ``furthest``: the view that ends last, with its place. ``unbounded``: a use whose end is not known: a view
    at a position that is not constant, of dynamic shape or without elements, or an op other than
    ``memref.view``.
    """

    kernel: str
    bytes: int  # to the end of the last view with a constant position; 0 without such a view
    furthest: str  # op name and source location of that view, for messages; "" without such a view
    unbounded: str  # op name and source location of the last use whose end is not known; "" without one


def custom_shared_views(function: Op) -> CustomSharedViews:
    """Returns the dynamic shared memory that the views in an outlined kernel need; changes nothing.

    Each ``memref.view`` of ``gpu.dynamic_shared_memory`` with a constant shift and a static shape gives a
    lower limit of the bytes that the launch must request.

        %block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
        %tile = memref.view %block[%c1024][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
      needs 2048 bytes.
    """
    size = 0
    furthest = ""
    unbounded = ""
    for block in walk(function, DYNAMIC_SHARED):
        for use in block.results[0].uses:
            op = use.owner.operation
            end = _end_of(op)
            if end is None:
                unbounded = f"{op.name} {location_of(op)}"
            elif end > size:
                size = end
                furthest = f"{op.name} {location_of(op)}"
    return CustomSharedViews(name_of(function), size, furthest, unbounded)


def reserved_bytes(launch: Op, views: CustomSharedViews) -> int | None:
    """Returns the bytes of dynamic shared memory that a launch requests.

    If it requests none, what ``views`` need. None for a request that is not constant. Raises CandidateError:
    RESOURCES for a request of less than the views need, COMPILE for a launch without a request of a kernel
    with ``unbounded`` views.
    """
    requested = shared_bytes_operand(launch)
    if requested is None:
        if views.unbounded:
            found = "found a place that is not constant and no dynamic_shared_memory_size"
            allowed = f"a launch of {views.kernel} that says the size"
            raise CandidateError(Stage.COMPILE, f"{views.unbounded}: {found}, allowed {allowed}")
        return views.bytes
    size = constant_of(requested)
    if size is not None and size < views.bytes:
        found = f"found dynamic_shared_memory_size {size}, allowed at least {views.bytes} bytes"
        raise CandidateError(
            Stage.RESOURCES,
            f"launch of {views.kernel} {location_of(launch)}: {found}, which {views.furthest} needs",
        )
    return size


def _end_of(op: Op) -> int | None:
    if op.name != "memref.view" or not op.results[0].type.has_static_shape or 0 in op.results[0].type.shape:
        return None
    shift = constant_of(op.operands[1])
    if shift is None:
        return None
    return shift + memref_bytes(op.results[0].type)


def use_dynamic_shared_globals(module: ir.Module) -> None:
    """Replaces shared-memory globals without elements by dynamic shared memory in all kernels, in place.

    Such a global (``memref<0xf16, #gpu.address_space<workgroup>>``) is CUDA's ``extern __shared__``. LLVM
    would print it as static memory of which the kernel owns no byte, and the next symbol would overlap it.

        memref.global "private" @all : memref<0xf16, #gpu.address_space<workgroup>>
        %all = memref.get_global @all : memref<0xf16, #gpu.address_space<workgroup>>
      becomes
        %block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
        %all = memref.view %block[%c0][] : ... to memref<0xf16, #gpu.address_space<workgroup>>
    """
    for holder in walk(module, "gpu.module"):
        for get in walk(holder, "memref.get_global"):
            if _is_dynamic(get.results[0].type):
                memory = get.results[0]
                with get.location, ir.InsertionPoint(get):
                    block = value(DYNAMIC_SHARED, ir.Type.parse(BLOCK_TYPE))
                    memory.replace_all_uses_with(value("memref.view", memory.type, block, index(0)))
                get.erase()
        for op in walk(holder, "memref.global"):
            if _is_dynamic(ir.TypeAttr(op.attributes["type"]).value):
                op.erase()


def _is_dynamic(memref: Type) -> bool:
    return is_workgroup(memref) and 0 in memref.shape


def make_shared_memory_external(module: ir.Module, alignment_bytes: int) -> int:
    """Gives the symbols of dynamic shared memory external linkage and an alignment; returns how many.

    LLVM prints the internal arrays of no elements of ``convert-gpu-to-nvvm`` as one static byte, which would
    overlap other shared memory; external symbols, ``.extern .shared .align N .b8 name[]``, come after that.

        llvm.mlir.global internal @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : ...
      with alignment_bytes = 1024 becomes
        llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 1024 : i64} : ...
    """
    symbols = [
        op
        for op in walk(module, "llvm.mlir.global")
        if ir.StringAttr(op.attributes["sym_name"]).value.startswith(SYMBOL_PREFIX)
    ]
    for symbol in symbols:
        symbol.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
        symbol.attributes["alignment"] = ir.Attribute.parse(f"{alignment_bytes} : i64")
    return len(symbols)


ASYNC_COPY, ASYNC_GROUP, ASYNC_WAIT = (
    f"nvgpu.device_async_{name}" for name in ("copy", "create_group", "wait")
)


# Live ranges of a kernel's shared-memory buffers, as far as barriers prove them.
#
# An analysis of outlined kernels that changes nothing: live intervals of one basic block, as in linear-scan
# register allocation (Poletto and Sarkar 1999). Positions count the ops of the kernel's only block; a nested
# op has the position of its outermost parent. A buffer is free after a barrier that follows its last use,
# since other threads may lag until then; a barrier in a loop or a branch proves nothing. Buffers with a use
# that is not listed here, and all buffers of a kernel of several blocks, are live all the time.


@dataclass(frozen=True)
class Lifetime:
    """The interval in which a shared-memory buffer is in use, in positions of ops in the kernel's block."""

    first: float  # the first use; -inf where unknown, inf without uses
    freed: float  # a barrier after the last access of any thread or copy; inf: none, -inf: no uses

    def overlaps(self, other: "Lifetime") -> bool:
        return not (self.freed < other.first or other.freed < self.first)


class SharedMemoryLiveness:
    """Computes when each shared-memory buffer of one ``gpu.func`` is in use, as far as barriers prove it."""

    def __init__(self, function: Op) -> None:
        blocks = list(function.regions[0].blocks)
        self._is_straight = len(blocks) == 1
        self._block = blocks[0]
        self._top = ops_in(blocks[0])
        self._position = {op: index for index, op in enumerate(self._top)}
        self._groups = list(map(self._position_of, walk(function, ASYNC_GROUP)))
        self._waits = [index for index, op in enumerate(self._top) if _waits_for_all(op)]
        self._barriers = [index for index, op in enumerate(self._top) if _orders_shared_memory(op)]

    def lifetime(self, buffer: Value) -> Lifetime:
        """Returns when ``buffer`` is in use, in positions of ops in the kernel's block.

        -inf to inf if not known, inf to -inf for a buffer without uses.
        """
        users = _users(buffer)
        if not self._is_straight or users is None:
            return Lifetime(-ALWAYS, ALWAYS)
        uses = [op for op in users if op.name != "memref.dealloc"]
        if not uses:
            return Lifetime(ALWAYS, -ALWAYS)
        positions = list(map(self._position_of, uses))
        copies = [self._position_of(op) for op in uses if op.name == ASYNC_COPY]
        complete: float = max(positions)
        if copies:
            closed = min((at for at in self._groups if at >= max(copies)), default=ALWAYS)
            complete = max(complete, min((at for at in self._waits if at > closed), default=ALWAYS))
        return Lifetime(min(positions), min((at for at in self._barriers if at > complete), default=ALWAYS))

    def _position_of(self, op: Op) -> int:
        while op not in self._position:
            op = op.parent
        return self._position[op]


def _users(buffer: Value) -> list[Op] | None:
    users: list[Op] = []
    for use in buffer.uses:
        op = use.owner.operation
        if op.name in VIEWS:
            through = _users(op.results[0])
            if through is None:
                return None
            users.extend([op, *through])
        elif op.name in SYNCHRONOUS or op.name == ASYNC_COPY:
            users.append(op)
        else:
            return None
    return users


def _orders_shared_memory(op: Op) -> bool:
    """Returns whether an op is a barrier of the whole block that makes writes to shared memory visible."""
    if op.name != "gpu.barrier" or len(op.operands):
        return False
    fenced = op.attributes.get("address_spaces")
    return fenced is None or "workgroup" in str(fenced)


def _waits_for_all(op: Op) -> bool:
    if op.name != ASYNC_WAIT:
        return False
    allowed = op.attributes.get("numGroups")
    return allowed is None or ir.IntegerAttr(allowed).value == 0


@dataclass(frozen=True)
class AllocationRequest:
    """Size and alignment, both in bytes, of one buffer to place in a block of memory."""

    bytes: int
    alignment_bytes: int


def first_fit_offsets(
    requests: tuple[AllocationRequest, ...], interfere: Callable[[int, int], bool], start_bytes: int = 0
) -> tuple[int, ...]:
    """Returns an offset in bytes for each request: a multiple of its alignment, at least ``start_bytes``.

    Requests i and j share no byte if ``interfere(i, j)``, which is symmetric. The largest request is placed
    first (equal sizes in order), each at its lowest free offset. Deterministic. The order is that of "greedy
    by size" (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
    """
    offsets: dict[int, int] = {}
    for request in sorted(range(len(requests)), key=lambda number: (-requests[number].bytes, number)):
        taken = sorted(
            (offsets[other], offsets[other] + requests[other].bytes)
            for other in offsets
            if interfere(request, other)
        )
        offsets[request] = _lowest_free(requests[request], taken, start_bytes)
    return tuple(offsets[index] for index in range(len(requests)))


def total_bytes(requests: tuple[AllocationRequest, ...], offsets: tuple[int, ...]) -> int:
    """Returns the size in bytes of a block that holds all buffers at their ``offsets``; 0 without buffers."""
    ends = (offset + request.bytes for request, offset in zip(requests, offsets, strict=True))
    return max(ends, default=0)


def align(offset: int, alignment_bytes: int) -> int:
    """Returns the least multiple of ``alignment_bytes`` that is not below ``offset``."""
    return -(-offset // alignment_bytes) * alignment_bytes


def _lowest_free(request: AllocationRequest, taken: list[tuple[int, int]], start_bytes: int) -> int:
    offset = align(start_bytes, request.alignment_bytes)
    for low, high in taken:
        if offset + request.bytes <= low:  # later ranges start no earlier
            break
        offset = max(offset, align(high, request.alignment_bytes))
    return offset


@dataclass(frozen=True)
class SharedBlock:
    """A kernel's dynamic shared memory, in bytes; the least size if launches set the size at run time."""

    kernel: str
    bytes: int
    alignment_bytes: int


def use_dynamic_shared_memory(module: ir.Module, limit_bytes: int) -> tuple[SharedBlock, ...]:
    """Packs the shared memory of each kernel into one dynamic block; returns the block of each kernel.

    Static shared memory is limited to 48 KiB, dynamic to ``limit_bytes``. Buffers that barriers separate in
    time share bytes; what launches request (``reserved_bytes``) comes first, or last if its size is not
    constant. Raises CandidateError: RESOURCES for a kernel that needs more than ``limit_bytes``, or a launch
    that requests less than its views need; COMPILE for a buffer that is not static and row-major, and for
    views without a known end of a launch that requests nothing.

        gpu.launch_func @m::@k blocks in (...) threads in (...) args(%g : memref<256xf32>)
        %a = memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
        %b = memref.alloc() : memref<256xf32, #gpu.address_space<workgroup>>
      becomes, where both are in use at one time
        gpu.launch_func @m::@k ... dynamic_shared_memory_size %c2048_i32 args(%g : memref<256xf32>)
        %block = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
        %a = memref.view %block[%c0][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
        %b = memref.view %block[%c1024][] : ... to memref<256xf32, #gpu.address_space<workgroup>>
    """
    blocks = []
    for function in walk(module, "gpu.func"):
        block = _rewrite(module, function)
        if block.bytes > limit_bytes:
            sizes = f"found {block.bytes} bytes, allowed {limit_bytes}"
            location = location_of(function)
            raise CandidateError(Stage.RESOURCES, f"shared memory of {block.kernel}: {sizes} ({location})")
        blocks.append(block)
    return tuple(blocks)


def attributions_of(function: Op) -> list[Value]:
    """Returns the workgroup attributions of a ``gpu.func``: the block arguments that are shared memory."""
    arguments = list(function.regions[0].blocks[0].arguments)
    first = len(function_type(function).inputs)
    return arguments[first : first + _attribution_count(function)]


def _rewrite(module: ir.Module, function: Op) -> SharedBlock:
    """Packs one kernel's shared memory after the bytes that launches request, or before dynamic ones."""
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
    lifetimes = list(map(liveness.lifetime, buffers))
    start = align(before, least)
    offsets = first_fit_offsets(requests, lambda i, j: lifetimes[i].overlaps(lifetimes[j]), start)
    total = total_bytes(requests, offsets)
    alignment_bytes = max(request.alignment_bytes for request in requests)
    own = walk(function, DYNAMIC_SHARED)
    _replace(function, buffers, offsets)
    _drop_attributions(function)
    if is_known:
        _set_sizes(launches, total)
        return SharedBlock(name, total, alignment_bytes)
    packed = align(total, least)
    for op in own:
        _move_after(op, packed)
    for launch in launches:
        set_shared_bytes(launch, packed, shared_bytes_operand(launch))
    return SharedBlock(name, packed + views.bytes, alignment_bytes)


def _set_sizes(launches: list[Op], size: int) -> None:
    for launch in launches:
        set_shared_bytes(launch, size)


def _move_after(op: Op, shift: int) -> None:
    """Moves the start of a kernel's ``gpu.dynamic_shared_memory`` by ``shift`` bytes."""
    with op.location, ir.InsertionPoint(op):
        whole = op.clone().results[0]
        at = index(shift)
        none = index(0)
        size = value("arith.subi", at.type, value("memref.dim", at.type, whole, none), at)
        rest = value("memref.view", whole.type, whole, at, size)
    op.results[0].replace_all_uses_with(rest)
    op.erase()


def _allocations(function: Op) -> list[Value]:
    return [
        op.results[0]
        for name in ("memref.alloc", "memref.alloca")
        for op in walk(function, name)
        if is_workgroup(ir.MemRefType(op.results[0].type))
    ]


def _attribution_count(function: Op) -> int:
    name = "workgroup_attributions"
    if name in function.attributes:
        return int(ir.IntegerAttr(function.attributes[name]).value)
    return 0


def _request(kernel: str, buffer: Value, least_alignment_bytes: int) -> AllocationRequest:
    memref = ir.MemRefType(buffer.type)
    if not memref.has_static_shape or not is_row_major(memref):
        owner = buffer.owner if isinstance(buffer, ir.OpResult) else buffer.owner.owner
        found = f"found {memref}, allowed a static shape in row-major order"
        raise CandidateError(
            Stage.COMPILE, f"shared memory of {kernel}: {found} ({location_of(owner.operation)})"
        )
    requested = 0
    if isinstance(buffer, ir.OpResult) and "alignment" in buffer.owner.attributes:
        requested = ir.IntegerAttr(buffer.owner.attributes["alignment"]).value
    return AllocationRequest(memref_bytes(memref), max(least_alignment_bytes, requested))


def _replace(function: Op, buffers: list[Value], offsets: tuple[int, ...]) -> None:
    """Creates the views at the start of the kernel; erases last, as an allocation may be its first op."""
    with function.location, ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        block = value(DYNAMIC_SHARED, ir.Type.parse(BLOCK_TYPE))
        for buffer, offset in zip(buffers, offsets, strict=True):
            view = value("memref.view", buffer.type, block, index(offset))
            for use in list(buffer.uses):
                if use.owner.operation.name == "memref.dealloc":
                    use.owner.operation.erase()
            buffer.replace_all_uses_with(view)
    for buffer in buffers:
        if isinstance(buffer, ir.OpResult):
            buffer.owner.erase()


def _drop_attributions(function: Op) -> None:
    block = function.regions[0].blocks[0]
    for argument in reversed(attributions_of(function)):
        block.erase_argument(argument.arg_number)
    for name in ("workgroup_attributions", "workgroup_attrib_attrs"):
        if name in function.attributes:
            del function.attributes[name]
