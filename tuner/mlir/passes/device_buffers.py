"""A buffer in host memory and its place in device memory: how the second is made, filled and freed."""

import enum
from dataclasses import dataclass, field
from typing import Any

from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.building import create, index, value
from tuner.mlir.passes.buffer_roots import described
from tuner.mlir.passes.validity import Side
from tuner.mlir.types import is_row_major

ALLOCATIONS = frozenset({"memref.alloc", "memref.alloca"})


class Kind(enum.Enum):
    """Where the program had the buffer from, which says where its contents must be at the end."""

    ARGUMENT = "argument"  # in host memory, the caller's
    NATIVE = "native"  # argument in device memory, the caller's; host memory is ours
    CONSTANT = "constant"  # global that nobody writes
    GLOBAL = "global"
    ALLOCATION = "allocation"


@dataclass
class Buffer:
    """One buffer, in both memories."""

    kind: Kind
    family: int
    host: Any  # memref
    device: Any  # memref of the same type
    block: Any  # at whose end it goes out of scope
    flat: Any  # device memory as it is allocated and copied: ``device``, or what that is a view of
    relay: tuple[Any, Any] | None = None  # host memory like ``flat`` and a view of it like ``host``
    deallocations: list[Any] = field(default_factory=list)  # of host memory
    is_freed_late: bool = False  # the program frees it in an inner block
    is_returned: bool = False

    def copy_to(self, side: Side) -> None:
        """Copies all of it, at the current insertion point."""
        if self.kind is Kind.NATIVE and not is_row_major(self.host.type):
            found = f"found {self.host.type} in device memory, used on the host"
            raise CandidateError(
                Stage.COMPILE, f"{described(self.device)}: {found}, allowed a row-major order"
            )
        if self.kind is Kind.CONSTANT and side is Side.HOST:
            return  # it never changes there, whatever happens to others of its family
        source, target = (self.host, self.flat) if side is Side.DEVICE else (self.flat, self.host)
        if self.flat == self.device:
            create("gpu.memcpy", [], [target, source])
            return
        memory, view = self._relay()
        if side is Side.DEVICE:
            create("memref.copy", [], [self.host, view])
            create("gpu.memcpy", [], [self.flat, memory])
        else:
            create("gpu.memcpy", [], [memory, self.flat])
            create("memref.copy", [], [view, self.host])

    def free(self) -> None:
        """Frees what was made for it, at the current insertion point."""
        if self.kind is Kind.NATIVE:
            if not self.is_returned:
                self.deallocations.append(create("memref.dealloc", [], [self.host]))
            return
        create("gpu.dealloc", [], [self.flat])
        if self.relay is not None:
            create("memref.dealloc", [], [self.relay[0]])
        if self.is_freed_late:
            self.deallocations.append(create("memref.dealloc", [], [self.host]))

    def _relay(self) -> tuple[Any, Any]:
        if self.relay is None:
            with ir.InsertionPoint.after(self.device.owner.operation):
                flat = self.flat.owner.operation
                sizes = list(flat.operands)
                memory = _allocate("memref.alloc", self.flat.type, sizes)
                cast = self.device.owner.operation.clone()
                cast.operands[0] = memory
            self.relay = (memory, cast.results[0])
        return self.relay


def allocate_like(host: Any) -> tuple[Any, Any]:
    """Returns device memory for a memref, made at the current insertion point, and its view of the same type.

    It has the gaps between rows that the host's has, but not what is before its first element.
    """
    kind = host.type
    if not isinstance(kind, ir.MemRefType):
        raise CandidateError(Stage.COMPILE, f"{described(host)}: found {kind}, allowed a ranked memref")
    if is_row_major(kind):
        memory = _allocate("gpu.alloc", kind, dynamic_sizes(host))
        return memory, memory
    return _allocate_span(host, kind)


def allocate_host_like(device: Any) -> Any:
    """Allocates host memory for a memref in device memory, at the current insertion point."""
    return _allocate("memref.alloc", device.type, dynamic_sizes(device))


def dynamic_sizes(buffer: Any) -> list[Any]:
    """Returns the sizes that the type leaves open."""
    if not isinstance(buffer.owner, ir.Block) and buffer.owner.operation.name in ALLOCATIONS:
        return list(buffer.owner.operands)
    open_sizes = [number for number in range(buffer.type.rank) if buffer.type.is_dynamic_dim(number)]
    return [value("memref.dim", ir.IndexType.get(), buffer, index(number)) for number in open_sizes]


def _allocate(name: str, kind: Any, sizes: list[Any]) -> Any:
    segments = [0, len(sizes), 0] if name == "gpu.alloc" else [len(sizes), 0]
    return value(name, kind, *sizes, operandSegmentSizes=ir.DenseI32ArrayAttr.get(segments))


def _allocate_span(host: Any, kind: Any) -> tuple[Any, Any]:
    """Allocates from the first to the last element, and views it with the host's strides."""
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
        sizes: list[Any] = []
        steps: list[Any] = []
    else:
        sizes, steps, span = _shape(host, kind, first)
        flat = ir.MemRefType.get(
            [ir.ShapedType.get_dynamic_size()], kind.element_type, memory_space=kind.memory_space
        )
        memory = _allocate("gpu.alloc", flat, [span])
    offsets = [index(0)] if offset == any_stride else []
    return memory, _view(memory, kind, offsets, sizes, steps)


def _shape(host: Any, kind: Any, first: int) -> tuple[list[Any], list[Any], Any]:
    """Computes the open sizes and strides, and the number of elements from the first to the last."""
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
    span = value("arith.maxsi", number, span, index(0))  # a size of 0 may make it negative
    any_stride = ir.ShapedType.get_dynamic_stride_or_offset()
    known = kind.get_strides_and_offset()[0]
    open_sizes = [size for axis, size in enumerate(sizes) if kind.is_dynamic_dim(axis)]
    return open_sizes, [step for axis, step in enumerate(strides) if known[axis] == any_stride], span


def _view(memory: Any, kind: Any, offsets: list[Any], sizes: list[Any], strides: list[Any]) -> Any:
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
