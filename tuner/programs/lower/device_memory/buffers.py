"""A buffer in host memory and its mirror in device memory: how the mirror is allocated, filled and freed.

A contiguous host buffer has a mirror of the same type. A non-contiguous buffer has flat device memory up to
its last element, and ``device`` is a view of the flat memory. ``gpu-to-llvm`` cannot copy such a view, so
copies pass through staging memory on the host: loops copy between the host buffer and the staging memory, and
one ``gpu.memcpy`` copies between the staging memory and the device.

    func.func @f(%a: memref<4x8xf32, strided<[16, 1]>>)
  gets
    %flat = gpu.alloc () : memref<56xf32>
    %device = memref.reinterpret_cast %flat to offset: [0], sizes: [4, 8], strides: [16, 1] : ...
    %staging = memref.alloc() : memref<56xf32>
"""

import enum
from dataclasses import dataclass, field

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import Block, Op, Type, Value, ir
from tuner.mlir.effects.buffer_roots import described
from tuner.mlir.rewrite.building import create, dynamic_sizes, index, value
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.memref_copies import copy_buffer
from tuner.mlir.rewrite.type_sizes import is_row_major
from tuner.programs.lower.device_memory.validity import Side

ALLOCATIONS = frozenset({"memref.alloc", "memref.alloca"})


class BufferKind(enum.Enum):
    """The origin of a buffer, which determines where its contents must be when the function returns."""

    ARGUMENT = "argument"  # host memory of the caller
    DEVICE_ARGUMENT = "device argument"  # device memory of the caller; the function allocates the host memory
    CONSTANT = "constant"  # memref.global that is never written
    GLOBAL = "global"
    ALLOCATION = "allocation"


@dataclass
class MirroredBuffer:
    """A buffer of a host program with its memory on the host and its memory on the device."""

    kind: BufferKind
    alias_set: int
    host: Value  # memref
    device: Value  # memref of the same type
    block: Block  # the buffer goes out of scope at the end of this block
    # device memory as it is allocated and copied: ``device``, or the memory of which ``device`` is a view
    flat: Value
    # host memory like ``flat``, and a view of this memory like ``host``
    staging: tuple[Value, Value] | None = None
    deallocations: list[Op] = field(default_factory=list)  # of host memory
    is_freed_late: bool = False  # the program frees the buffer in an inner block
    is_returned: bool = False

    def copy_to(self, side: Side) -> None:
        """Creates a copy of the whole buffer to host or device memory, at the current insertion point.

        Creates nothing for a copy of a constant to the host, since a constant is never written on the device.
        Raises CandidateError(COMPILE) for a non-contiguous device argument, since its memory is the caller's.
        """
        if self.kind is BufferKind.DEVICE_ARGUMENT and not is_row_major(self.host.type):
            found = f"found {self.host.type} in device memory, used on the host"
            raise CandidateError(
                Stage.COMPILE, f"{described(self.device)}: {found}, allowed a row-major order"
            )
        if self.kind is BufferKind.CONSTANT and side is Side.HOST:
            # a constant is never written on the device, whatever happens to other buffers of its alias set
            return
        source, target = (self.host, self.flat) if side is Side.DEVICE else (self.flat, self.host)
        if self.flat == self.device:
            create("gpu.memcpy", [], [target, source])
            return
        memory, view = self._staging()
        if side is Side.DEVICE:
            copy_buffer(view, self.host)
            create("gpu.memcpy", [], [self.flat, memory])
        else:
            create("gpu.memcpy", [], [memory, self.flat])
            copy_buffer(self.host, view)

    def free(self) -> None:
        """Creates deallocations of what was allocated for the mirror, at the current insertion point.

        For a device argument this is the host memory, unless it is returned; for other buffers the device
        memory, the staging memory and, if ``is_freed_late``, the host memory as well.
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

    def _staging(self) -> tuple[Value, Value]:
        if self.staging is None:
            with ir.InsertionPoint.after(self.device.owner.operation):
                flat = self.flat.owner.operation
                sizes = list(flat.operands)
                memory = _allocate("memref.alloc", self.flat.type, sizes)
                cast = self.device.owner.operation.clone()
                cast.operands[0] = memory
            self.staging = (memory, cast.results[0])
        return self.staging


def allocate_like(host: Value) -> tuple[Value, Value]:
    """Allocates device memory for a memref in host memory, at the current insertion point.

    Returns (the memory as it is allocated, its view of the memref's type); both are the same value for a
    contiguous memref. The view has the strides and the static offset of the memref; a dynamic offset becomes
    0.

    Raises CandidateError(COMPILE) for an unranked memref, and for a non-contiguous allocation of dynamic
    size.
    """
    kind = host.type
    if not isinstance(kind, ir.MemRefType):
        raise CandidateError(Stage.COMPILE, f"{described(host)}: found {kind}, allowed a ranked memref")
    if is_row_major(kind):
        memory = _allocate("gpu.alloc", kind, _sizes_of(host))
        return memory, memory
    return _allocate_span(host, kind)


def allocate_host_like(device: Value) -> Value:
    """Creates a ``memref.alloc`` with the type and sizes of a memref in device memory; returns its result.

    It is created at the current insertion point, and nothing is copied.
    """
    return _allocate("memref.alloc", device.type, _sizes_of(device))


def _sizes_of(buffer: Value) -> list[Value]:
    """Returns the dynamic sizes of a memref: the operands of its allocation, else memref.dim."""
    allocation = op_of(buffer, *ALLOCATIONS)
    return dynamic_sizes(buffer) if allocation is None else list(allocation.operands)


def _allocate(name: str, kind: Type, sizes: list[Value]) -> Value:
    segments = [0, len(sizes), 0] if name == "gpu.alloc" else [len(sizes), 0]
    return value(name, kind, *sizes, operandSegmentSizes=ir.DenseI32ArrayAttr.get(segments))


def _allocate_span(host: Value, kind: Type) -> tuple[Value, Value]:
    """Allocates memory up to the last element, and returns it with a view that has the host's strides."""
    if not isinstance(host.owner, ir.Block) and len(host.owner.operands):
        found = f"found {kind} of dynamic size"
        raise CandidateError(
            Stage.COMPILE, f"{described(host)}: {found}, allowed a row-major order or a static size"
        )
    strides, offset = kind.get_strides_and_offset()
    any_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    first = 0 if offset == any_stride else offset
    if kind.has_static_shape and any_stride not in strides:
        last = sum((size - 1) * stride for size, stride in zip(kind.shape, strides, strict=True))
        elements = 0 if 0 in kind.shape else first + last + 1
        flat = ir.MemRefType.get([elements], kind.element_type, memory_space=kind.memory_space)
        memory = _allocate("gpu.alloc", flat, [])
        sizes: list[Value] = []
        steps: list[Value] = []
    else:
        sizes, steps, span = _shape(host, kind, first)
        flat = ir.MemRefType.get(
            [ir.ShapedType.get_dynamic_size()], kind.element_type, memory_space=kind.memory_space
        )
        memory = _allocate("gpu.alloc", flat, [span])
    offsets = [index(0)] if offset == any_stride else []
    return memory, _view(memory, kind, offsets, sizes, steps)


def _shape(host: Value, kind: Type, first: int) -> tuple[list[Value], list[Value], Value]:
    """Computes the dynamic sizes and strides, and the number of elements from the first to the last."""
    number = ir.IndexType.get()
    base = ir.MemRefType.get([], kind.element_type, memory_space=kind.memory_space)
    metadata = create(
        "memref.extract_strided_metadata", [base, *[number] * (1 + 2 * kind.rank)], [host]
    ).results
    sizes, strides = list(metadata)[2 : 2 + kind.rank], list(metadata)[2 + kind.rank :]
    span = index(first + 1)
    for size, stride in zip(sizes, strides, strict=True):
        last = value("arith.subi", number, size, index(1))
        span = value("arith.addi", number, span, value("arith.muli", number, last, stride))
    span = value("arith.maxsi", number, span, index(0))  # a size of 0 may make the span negative
    any_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    known = kind.get_strides_and_offset()[0]
    dynamic = [size for axis, size in enumerate(sizes) if kind.is_dynamic_dim(axis)]
    return dynamic, [step for axis, step in enumerate(strides) if known[axis] == any_stride], span


def _view(memory: Value, kind: Type, offsets: list[Value], sizes: list[Value], strides: list[Value]) -> Value:
    steps, offset = kind.get_strides_and_offset()
    segments = [1, len(offsets), len(sizes), len(strides)]
    return value(
        "memref.reinterpret_cast",
        kind,
        *[memory, *offsets, *sizes, *strides],
        static_offsets=ir.DenseI64ArrayAttr.get([offset]),
        static_sizes=ir.DenseI64ArrayAttr.get(list(kind.shape)),
        static_strides=ir.DenseI64ArrayAttr.get(list(steps)),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get(segments),
    )
