"""Buffers of a host program in both memories, of the host and of the device, and where each is valid.

``Valid`` is the state of the analysis: the (alias set, side) pairs whose contents are up to date. ``written``
to ``at_loop`` compute it; a ``MirroredBuffer`` has both memories of one buffer.
"""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Block, Op, Type, Value, ir
from tuner.mlir.effects import aliases
from tuner.mlir.ir.building import create, dynamic_sizes, index, reinterpreted, value
from tuner.mlir.ir.memrefs import copy_buffer, is_row_major
from tuner.mlir.ir.reading import op_of

# Maximum number of iterations of the search for a fixed point. Any state is correct, since copies make it
# true; a fixed point saves copies.
ITERATIONS_LIMIT = 4
ALLOCATIONS = frozenset({"memref.alloc", "memref.alloca"})


# Where buffers hold their current contents: in host memory, in device memory, or in both.
#
# The states of a forward data-flow analysis, with its meet and loop rules; ``coherence.py`` has the transfer
# functions. An alias set, whose buffers control flow may exchange, has one state. A copy makes the other side
# valid too; a write leaves only the written side valid. Where control-flow paths join, a location is valid if
# it is valid on all paths.


class Side(enum.Enum):
    """One of the two memories that a buffer has: of the host or of the device."""

    HOST = "host"
    DEVICE = "device"

    @property
    def other(self) -> "Side":
        """Returns the other memory: of the device for the host's, of the host for the device's."""
        if self is Side.HOST:
            return Side.DEVICE
        return Side.HOST


Location = tuple[int, Side]  # number of an alias set, and the memory in which it is valid
Valid = frozenset[Location]


def written(valid: Valid, alias_set: int, side: Side) -> Valid:
    """Returns ``valid`` after a write to an alias set on one side: the other side is out of date."""
    return valid - {(alias_set, side.other)} | {(alias_set, side)}


def sides_of(valid: Valid, alias_set: int) -> set[Side]:
    """Returns the sides on which an alias set is valid: of the host, of the device, both or none."""
    return {side for number, side in valid if number == alias_set}


def meet(paths: Sequence[Valid], preferred: Callable[[int], set[Side]]) -> Valid:
    """Returns the locations that are valid where several ``paths`` of control flow join.

    An alias set that is valid on every path, but on no common side, gets its ``preferred`` sides: a copy at
    the end of the other paths makes them valid.
    """
    common = frozenset.intersection(*paths)
    known = frozenset.intersection(*map(_alias_sets, paths))
    lost = known - _alias_sets(common)
    valid = set(common)
    for alias_set in lost:
        for side in preferred(alias_set):
            valid.add((alias_set, side))
    return frozenset(valid)


def _alias_sets(valid: Valid) -> frozenset[int]:
    return frozenset(alias_set for alias_set, _ in valid)


def after_branches(before: Valid, paths: Sequence[Valid]) -> Valid:
    """Returns the locations that are valid after a branch.

    ``before``: valid before the branch; ``paths``: valid at the end of each path. If an alias set is valid on
    no common side, it returns to its side before the branch, so that a path without accesses copies nothing.
    It goes to the device if it was valid on both sides before, or on none.
    """

    def preferred(alias_set: int) -> set[Side]:
        sides = sides_of(before, alias_set)
        if len(sides) == 1:
            return sides
        return {Side.DEVICE}

    return meet(paths, preferred)


def at_loop(before: Valid, iteration: Callable[[Valid], tuple[Valid, Valid]]) -> Valid:
    """Returns the locations that are valid at the start of every iteration of a loop, as a fixed point.

    The search begins with the locations that the first iteration fetches, since a copy before the loop serves
    all iterations. It ends after at most ITERATIONS_LIMIT rounds. ``iteration`` maps the locations that are
    valid before it to (valid after it, fetched in it).
    """
    _, fetched = iteration(before)
    known = {alias_set for alias_set, _ in before}
    state = before | {location for location in fetched if location[0] in known}
    for _ in range(ITERATIONS_LIMIT):
        after, _ = iteration(state)
        following = meet([state, after], lambda alias_set, after=after: sides_of(after, alias_set))  # type: ignore[misc]
        if following == state:
            break
        state = following
    return state


class BufferKind(enum.Enum):
    """The origin of a buffer, which determines where its contents must be when the function returns."""

    ARGUMENT = "argument"  # host memory of the caller
    DEVICE_ARGUMENT = "device argument"  # device memory of the caller; the function allocates the host memory
    CONSTANT = "constant"  # memref.global that is never written
    GLOBAL = "global"
    ALLOCATION = "allocation"


@dataclass
class MirroredBuffer:
    """A buffer of a host program with its memory on the host and its memory on the device.

    A non-contiguous buffer has flat device memory, of which ``device`` is a view. ``gpu-to-llvm`` cannot copy
    such a view, so copies pass through staging memory on the host: loops, and one ``gpu.memcpy``.

        func.func @f(%a: memref<4x8xf32, strided<[16, 1]>>)
      gets
        %flat = gpu.alloc () : memref<56xf32>
        %device = memref.reinterpret_cast %flat to offset: [0], sizes: [4, 8], strides: [16, 1] : ...
        %staging = memref.alloc() : memref<56xf32>
    """

    kind: BufferKind
    alias_set: int
    host: Value  # memref
    device: Value  # memref of the same type
    block: Block  # the buffer goes out of scope at the end of this block
    # device memory as it is allocated and copied: ``device``, or the memory of which ``device`` is a view
    flat: Value
    # host memory like ``flat``, and a view of this memory like ``host``
    staging: tuple[Value, Value] | None = None
    # of host memory; erased with this memory if the host does not use it, replaced where ``pin`` replaces it
    deallocations: list[Op] = field(default_factory=list)
    is_freed_late: bool = False  # the program frees the buffer in an inner block
    is_returned: bool = False

    def copy_to(self, side: Side) -> None:
        """Creates a copy of the whole buffer to ``side``, host or device, at the insertion point.

        Creates nothing for a constant to the host. Raises CandidateError(COMPILE) for a non-contiguous device
        argument, since its memory is the caller's.
        """
        if self.kind is BufferKind.DEVICE_ARGUMENT and not is_row_major(self.host.type):
            actual = f"found {self.host.type} in device memory, used on the host"
            raise CandidateError(
                Stage.COMPILE, f"{aliases.described(self.device)}: {actual}, allowed a row-major order"
            )
        if self.kind is BufferKind.CONSTANT and side is Side.HOST:
            # a constant is never written on the device, whatever happens to other buffers of its alias set
            return
        source, target = (self.host, self.flat) if side is Side.DEVICE else (self.flat, self.host)
        if self.flat == self.device:
            create("gpu.memcpy", [], [target, source])
            return
        if self.staging is None:
            cast = self.device.owner.operation
            with ir.InsertionPoint.after(cast):
                memory = _allocate("memref.alloc", self.flat.type, list(self.flat.owner.operation.operands))
                view = cast.clone()
                view.operands[0] = memory
            self.staging = (memory, view.results[0])
        memory, view = self.staging
        if side is Side.DEVICE:
            copy_buffer(view, self.host)
            create("gpu.memcpy", [], [self.flat, memory])
        else:
            create("gpu.memcpy", [], [memory, self.flat])
            copy_buffer(self.host, view)

    def free(self) -> None:
        """Creates deallocations of the memory that was added for the buffer, and of host memory freed late.

        Added memory is the host's for a device argument, unless it is returned; else the device's.
        """
        if self.kind is BufferKind.DEVICE_ARGUMENT:
            if not self.is_returned:
                self.deallocations.append(create("memref.dealloc", [], [self.host]))
            return
        create("gpu.dealloc", [], [self.flat])
        if self.staging is not None:
            create("memref.dealloc", [], [self.staging[0]])
        if self.is_freed_late:
            self.deallocations.append(create("memref.dealloc", [], [self.host]))


def allocate_like(host: Value) -> tuple[Value, Value]:
    """Allocates device memory for a host memref at the insertion point.

    Returns (memory, view of the memory with the host's type); for a contiguous memref both are the same
    value. A dynamic offset becomes 0. Raises CandidateError(COMPILE) for an unranked memref, and for a
    non-contiguous allocation of dynamic size.
    """
    type_ = host.type
    if not isinstance(type_, ir.MemRefType):
        raise CandidateError(
            Stage.COMPILE, f"{aliases.described(host)}: found {type_}, allowed a ranked memref"
        )
    if is_row_major(type_):
        memory = _allocate("gpu.alloc", type_, _sizes_of(host))
        return memory, memory
    # memory up to the last element, and its view that has the host's strides
    is_dynamic_allocation = not isinstance(host.owner, ir.Block) and len(host.owner.operands) > 0
    if is_dynamic_allocation:
        actual = f"found {type_} of dynamic size"
        raise CandidateError(
            Stage.COMPILE, f"{aliases.described(host)}: {actual}, allowed a row-major order or a static size"
        )
    strides, offset = type_.get_strides_and_offset()
    any_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    first = 0 if offset == any_stride else offset
    sizes: list[Value] = []
    steps: list[Value] = []
    spans: list[Value] = []
    if type_.has_static_shape and any_stride not in strides:
        last = sum((size - 1) * stride for size, stride in zip(type_.shape, strides, strict=True))
        elements = 0 if 0 in type_.shape else first + last + 1
    else:
        sizes, steps, span = _dynamic_layout(host, type_, first)
        elements = ir.ShapedType.get_dynamic_size()
        spans = [span]
    flat = ir.MemRefType.get([elements], type_.element_type, memory_space=type_.memory_space)
    memory = _allocate("gpu.alloc", flat, spans)
    offsets = [index(0)] if offset == any_stride else []
    return memory, reinterpreted(memory, type_, offsets=offsets, sizes=sizes, steps=steps)


def allocate_host_like(device: Value) -> Value:
    """Creates a ``memref.alloc`` with the type and sizes of a device memref at the insertion point."""
    return _allocate("memref.alloc", device.type, _sizes_of(device))


def _sizes_of(buffer: Value) -> list[Value]:
    allocation = op_of(buffer, *ALLOCATIONS)
    if allocation is None:
        return dynamic_sizes(buffer)
    return list(allocation.operands)


def _allocate(name: str, type_: Type, sizes: list[Value]) -> Value:
    segments = [0, len(sizes), 0] if name == "gpu.alloc" else [len(sizes), 0]
    return value(name, type_, *sizes, operandSegmentSizes=ir.DenseI32ArrayAttr.get(segments))


def _dynamic_layout(host: Value, type_: Type, first: int) -> tuple[list[Value], list[Value], Value]:
    """Creates ops that read the layout of a memref when the program runs.

    Returns (the dynamic sizes, the dynamic strides, the number of elements up to the last one). ``first``:
    offset of the first element.
    """
    number = ir.IndexType.get()
    base = ir.MemRefType.get([], type_.element_type, memory_space=type_.memory_space)
    metadata = create(
        "memref.extract_strided_metadata", [base, *[number] * (1 + 2 * type_.rank)], [host]
    ).results
    sizes = list(metadata)[2 : 2 + type_.rank]
    strides = list(metadata)[2 + type_.rank :]
    span = index(first + 1)
    for size, stride in zip(sizes, strides, strict=True):
        last = value("arith.subi", number, size, index(1))
        span = value("arith.addi", number, span, value("arith.muli", number, last, stride))
    span = value("arith.maxsi", number, span, index(0))  # a size of 0 may make the span negative
    any_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    known = type_.get_strides_and_offset()[0]
    dynamic = [size for axis, size in enumerate(sizes) if type_.is_dynamic_dim(axis)]
    return dynamic, [step for axis, step in enumerate(strides) if known[axis] == any_stride], span
