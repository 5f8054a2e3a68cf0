"""Which elements of buffers an op of a host function reads and writes: on the device, and on the host.

For programs in which copies and device memory are explicit (``gpu.memcpy``, ``gpu.alloc``). A pointer that is
not made from a memref or another known object may point to any memory.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.aliases import (
    CAST,
    SOURCES,
    VIEWS,
    buffers_with_address_in,
    is_buffer,
    is_carried,
    may_be_unknown_pointer,
    roots_of,
)
from tuner.mlir.effects.memory_effects import KernelEffects, effect_of_use
from tuner.mlir.effects.op_effects import ANYTHING, READS, WRITES, Effect
from tuner.mlir.ir.reading import op_of, source_of

# Which elements of its buffer a memref spans, read from its type, so that halves of a buffer are distinct.
#
# A memref type with static offset, sizes and strides is a regular section of its buffer (Callahan and
# Kennedy, "Analysis of Interprocedural Side Effects in a Parallel Programming Environment", 1988). All views
# but ``memref.view`` keep the base address: their offset counts elements from the start of the buffer,
# however many views there are in between. Where an offset or a stride is dynamic, the section is that of the
# closest enclosing view whose type is static.

KEEP_THE_BASE = VIEWS - {"memref.view"}  # memref.view moves the base address by bytes
LEAVES_ITS_SOURCE = "memref.reinterpret_cast"  # may span elements that its source does not span
MAX_TERMS = 1000  # partial sums of a stride in an overlap test; row-major arrays need only a few
DEVICE_OPS = frozenset({"gpu.alloc", "gpu.dealloc", "gpu.memcpy", "gpu.memset", "gpu.launch_func"})
SHARED = "hostShared"  # attribute of gpu.alloc: pinned memory
THROUGH_POINTERS = ("llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.call", "llvm.intr.mem")
DESCRIPTOR = "nvgpu.tma.create.descriptor"  # gives a kernel access to its first operand, a memref
# Ops that forward memrefs or make views of memrefs, and access no memory.
FORWARDING = frozenset(
    {
        *VIEWS,
        *SOURCES,
        *("scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition", "arith.select"),
        *("func.return", "memref.extract_aligned_pointer_as_index", DESCRIPTOR),
    }
)
WRITES_WHOLE = Effect(reads=False, writes=True, is_bounded=False)


@dataclass(frozen=True)
class StridedRegion:
    """The elements ``offset + sum(index[d] * strides[d])`` of a buffer, ``0 <= index[d] < sizes[d]``."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # in elements; may be negative

    def overlaps(self, other: "StridedRegion") -> bool:
        """Returns whether two regions of one buffer share an element; True also where the search is cut off.

        A linear Diophantine equation in bounded variables, solved by search with Banerjee's bounds (Banerjee,
        "Dependence Analysis for Supercomputing", 1988), cut off above ``MAX_TERMS`` partial sums of a stride.
        """
        if 0 in self.sizes or 0 in other.sizes:
            return False
        counts: Counter[int] = Counter()  # |stride| -> how often both regions together may add it
        for region in (self, other):
            for stride, size in zip(region.strides, region.sizes, strict=True):
                counts[abs(stride)] += size - 1
        del counts[0]
        return _may_be_sum(other.last - self.first, sorted(counts.items(), reverse=True))

    @property
    def first(self) -> int:
        return self.offset + sum(min(0, span) for span in self._spans())

    @property
    def last(self) -> int:
        return self.offset + sum(max(0, span) for span in self._spans())

    def _spans(self) -> list[int]:
        return [(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)]


@dataclass(frozen=True)
class BufferPart:
    """The elements of the buffer ``root`` that an op reads or writes; ``region`` None: up to all elements."""

    root: Value
    region: StridedRegion | None = None  # None: unknown, up to the whole buffer

    def overlaps(self, other: "BufferPart") -> bool:
        """Returns whether two parts may share an element; False only where they are proved to be disjoint."""
        if self.root != other.root:
            return False
        return self.region is None or other.region is None or self.region.overlaps(other.region)


def region_of(buffer: Value) -> StridedRegion | None:
    """Returns a region that contains all elements of a memref, in the buffer that the memref is a view of.

    It is the region of the memref's type or, if that type is dynamic, of the closest view of static type that
    the memref is a view of. None if there is no such view, or only one beyond a ``memref.reinterpret_cast``;
    and for a memref from control flow, a select, ``memref.view``, a cast of other types or an unknown op.
    """
    region = _of_type(buffer.type)
    while (op := _op_of(buffer)) is not None and op.name in KEEP_THE_BASE:
        if op.name == LEAVES_ITS_SOURCE and region is None:
            return None
        buffer = op.operands[0]
        region = region or _of_type(buffer.type)
    is_root = not is_carried(buffer) if op is None else op.name in SOURCES and op.name != CAST
    if is_root:
        return region
    return None


def _op_of(value: Value) -> Op | None:
    if isinstance(value.owner, ir.Block):
        return None
    return value.owner.operation


def _may_be_sum(target: int, steps: list[tuple[int, int]]) -> bool:
    """Returns whether ``target`` may be a sum of steps, each taken at most as often as its count.

    ``steps``: (step, maximum count), in descending order. True also where the search is cut off.
    """
    targets = {target}
    for index, (step, count) in enumerate(steps):
        rest = sum(stride * times for stride, times in steps[index + 1 :])
        choices = [(t, range(max(0, -((rest - t) // step)), min(count, t // step) + 1)) for t in targets]
        if sum(len(times) for _, times in choices) > MAX_TERMS:
            return True
        targets = {t - step * times for t, choice in choices for times in choice}
    return 0 in targets


def _of_type(type_: Type) -> StridedRegion | None:
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return None
    try:
        strides, offset = type_.get_strides_and_offset()
    except RuntimeError:  # a layout without strides
        return None
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if unknown in (offset, *strides):
        return None
    return StridedRegion(offset, tuple(type_.shape), tuple(strides))


@dataclass(frozen=True)
class Accesses:
    """The parts of buffers that ops read and write; its truth value is False if it has none."""

    reads: frozenset[BufferPart] = frozenset()
    writes: frozenset[BufferPart] = frozenset()
    is_unknown: bool = False  # any buffer may be accessed

    def __bool__(self) -> bool:
        return bool(self.reads or self.writes or self.is_unknown)

    def conflicts_with(self, other: "Accesses") -> bool:
        """Returns whether one of the two may write what the other reads or writes (Bernstein 1966).

        Unknown accesses conflict with any access.
        """
        if self.is_unknown or other.is_unknown:
            return bool(self) and bool(other)
        return (
            _overlap(self.writes, other.writes)
            or _overlap(self.writes, other.reads)
            or _overlap(self.reads, other.writes)
        )


NONE = Accesses()


def union(every: Iterable[Accesses]) -> Accesses:
    """Returns all reads and writes of ``every`` as one ``Accesses``, unknown where one of them is unknown."""
    reads: set[BufferPart] = set()
    writes: set[BufferPart] = set()
    is_unknown = False
    for accesses in every:
        reads |= accesses.reads
        writes |= accesses.writes
        is_unknown = is_unknown or accesses.is_unknown
    return Accesses(frozenset(reads), frozenset(writes), is_unknown)


def is_device_work(op: Op) -> bool:
    """Returns whether the GPU executes ``op``.

    An allocation of pinned memory (``host_shared``) is host work.
    """
    return op.name in DEVICE_OPS and SHARED not in op.attributes


def has_device_work(op: Op) -> bool:
    """Returns whether the GPU executes ``op`` or an op nested in its regions (see ``is_device_work``)."""
    return any(map(is_device_work, inside(op)))


def device_accesses(op: Op, effects: KernelEffects) -> Accesses:
    """Returns what the GPU reads and writes when it executes ``op`` and its nested ops.

    An allocation or a free is a write. Raises CandidateError(COMPILE) for a memref of unknown origin.
    """
    return union(_of_device_op(inner, effects) for inner in inside(op) if is_device_work(inner))


def accesses_without_atomics(launch: Op, effects: KernelEffects) -> Accesses:
    """Returns what a launch reads and writes, without memory that its kernel uses by atomic ops only.

    Raises CandidateError(COMPILE) for a memref of unknown origin.
    """
    if effects.goes_anywhere(launch):
        return Accesses(is_unknown=True)
    return union(_access(value, effect) for value, effect in effects.of_launch_without_atomics(launch))


def host_accesses(op: Op) -> Accesses:
    """Returns what the host reads and writes when it executes ``op`` and the ops nested in it.

    Raises CandidateError(COMPILE) for a memref of unknown origin.
    """
    hosts = (inner for inner in inside(op) if inner.name not in DEVICE_OPS | FORWARDING)
    return union(map(_of_host_op, hosts))


def inside(op: Op) -> Iterator[Op]:
    """Yields ``op``, then all ops nested in its regions, in pre-order."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from inside(inner.operation)


def _overlap(some: frozenset[BufferPart], others: frozenset[BufferPart]) -> bool:
    return any(part.overlaps(other) for part in some for other in others)


def _of_device_op(op: Op, effects: KernelEffects) -> Accesses:
    if op.name == "gpu.alloc":
        return _access(op.results[0], WRITES_WHOLE)
    buffers = [operand for operand in op.operands if is_buffer(operand.type)]
    if op.name == "gpu.memcpy":
        return union((_access(buffers[0], WRITES), _access(buffers[1], READS)))
    if op.name in ("gpu.dealloc", "gpu.memset"):
        return _access(buffers[0], WRITES if op.name == "gpu.memset" else WRITES_WHOLE)
    if effects.goes_anywhere(op):
        return Accesses(is_unknown=True)
    return union(_access(value, effect) for value, effect in effects.of_launch(op))


def _of_host_op(op: Op) -> Accesses:
    pairs = ((operand, effect_of_use(op, index)) for index, operand in enumerate(op.operands))
    through_pointers = map(_through_host_pointer, op.operands) if op.name.startswith(THROUGH_POINTERS) else ()
    accesses = (_access(operand, effect) for operand, effect in pairs if is_buffer(operand.type))
    return union((*accesses, *through_pointers))


def _through_host_pointer(value: Value) -> Accesses:
    if not str(value.type).startswith("!llvm.ptr"):
        return NONE
    if may_be_unknown_pointer(value):
        return Accesses(is_unknown=True)
    return union(_access(buffer, ANYTHING) for buffer in buffers_with_address_in(value))


def _access(value: Value, effect: Effect) -> Accesses:
    if not (effect.reads or effect.writes):
        return NONE
    if not is_buffer(value.type):
        descriptor = op_of(source_of(value, ("builtin.unrealized_conversion_cast",)), DESCRIPTOR)
        if descriptor is None:
            return Accesses(is_unknown=True)
        return _access(descriptor.operands[0], effect)
    region = region_of(value) if effect.is_bounded else None
    parts = frozenset(BufferPart(root, region) for root in roots_of(value))
    nothing: frozenset[BufferPart] = frozenset()
    reads = parts if effect.reads else nothing
    writes = parts if effect.writes else nothing
    return Accesses(reads, writes)
