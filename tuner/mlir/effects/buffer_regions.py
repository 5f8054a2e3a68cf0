"""Which elements of its buffer a memref spans, read from its type, so that halves of a buffer are distinct.

A memref type with static offset, sizes and strides is a regular section of its buffer (Callahan and Kennedy,
"Analysis of Interprocedural Side Effects in a Parallel Programming Environment", 1988). All views but
``memref.view`` keep the base address: their offset counts elements from the start of the buffer, however many
views there are in between. Where an offset or a stride is dynamic, the section is that of the closest
enclosing view whose type is static.
"""

from collections import Counter
from dataclasses import dataclass

from tuner.mlir.bindings import Op, Type, Value, ir
from tuner.mlir.effects.buffer_roots import SOURCES, VIEWS
from tuner.mlir.effects.region_dataflow import is_carried

KEEP_THE_BASE = VIEWS - {"memref.view"}  # memref.view moves the base address by bytes
LEAVES_ITS_SOURCE = "memref.reinterpret_cast"  # may span elements that its source does not span
MAX_TERMS = 1000  # partial sums of one overlap test; row-major arrays need only a few


@dataclass(frozen=True)
class StridedRegion:
    """The elements of a buffer that a memref type of static offset, sizes and strides spans.

    Their positions, in elements from the start of the buffer, are ``offset + sum(index[d] * strides[d])`` for
    all ``0 <= index[d] < sizes[d]``.
    """

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # in elements; may be negative

    def overlaps(self, other: "StridedRegion") -> bool:
        """Returns whether two regions of one buffer share an element; True also where the search is cut off.

        A dependence test: ``offset + sum(i[d] * strides[d])`` of both must be equal for some indices within
        their sizes. That is a linear Diophantine equation in bounded variables, solved by search with
        Banerjee's bounds (Banerjee, "Dependence Analysis for Supercomputing", 1988). The search is cut off
        where one stride gives more than ``MAX_TERMS`` (1000) partial sums.
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
        """Returns the lowest position of an element, counted from the buffer's start; no size may be 0."""
        return self.offset + sum(min(0, each) for each in self._spans())

    @property
    def last(self) -> int:
        """Returns the highest position of an element, counted from the buffer's start; no size may be 0."""
        return self.offset + sum(max(0, each) for each in self._spans())

    def _spans(self) -> list[int]:
        return [(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)]


@dataclass(frozen=True)
class BufferPart:
    """The elements of the buffer ``root`` that an op reads or writes; ``region`` None: up to all elements."""

    root: Value
    region: StridedRegion | None = None  # None: unknown, up to the whole buffer

    def overlaps(self, other: "BufferPart") -> bool:
        """Returns whether two parts may share an element; False only where they are proved to be disjoint.

        Parts of different buffers are disjoint.
        """
        if self.root != other.root:
            return False
        return self.region is None or other.region is None or self.region.overlaps(other.region)


def region_of(buffer: Value) -> StridedRegion | None:
    """Returns a region that contains all elements of a memref, in the buffer that the memref is a view of.

    The region is that of the memref's type or, where its offset, sizes or strides are dynamic, of the closest
    enclosing view of static type. None where it is not known: without such a view, for a
    ``memref.reinterpret_cast`` of dynamic type and its views, and for a memref that control flow, a select,
    ``memref.view`` or an unknown op gives, and for views of it.
    """
    found = _of_type(buffer.type)
    while (op := _op_of(buffer)) is not None and op.name in KEEP_THE_BASE:
        if op.name == LEAVES_ITS_SOURCE and found is None:
            return None
        buffer = op.operands[0]
        found = found or _of_type(buffer.type)
    is_root = not is_carried(buffer) if op is None else op.name in SOURCES
    return found if is_root else None


def _may_be_sum(target: int, steps: list[tuple[int, int]]) -> bool:
    """Returns whether ``target`` is a sum of the steps: (step, maximum count), steps in descending order.

    A bounded subset sum, solved one step at a time; a partial sum from which the remaining steps cannot reach
    ``target`` is pruned.
    """
    targets = {target}
    for number, (step, count) in enumerate(steps):
        rest = sum(each * times for each, times in steps[number + 1 :])
        choices = [(t, range(max(0, -((rest - t) // step)), min(count, t // step) + 1)) for t in targets]
        if sum(len(times) for _, times in choices) > MAX_TERMS:
            return True
        targets = {t - step * times for t, choice in choices for times in choice}
    return 0 in targets


def _op_of(value: Value) -> Op | None:
    """Returns the operation that defines a value; None for a block argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _of_type(kind: Type) -> StridedRegion | None:
    """Returns the region of a memref type with static sizes, strides and offset; None for any other type."""
    if not isinstance(kind, ir.MemRefType) or not kind.has_static_shape:
        return None
    try:
        strides, offset = kind.get_strides_and_offset()
    except RuntimeError:  # a layout without strides
        return None
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if unknown in (offset, *strides):
        return None
    return StridedRegion(offset, tuple(kind.shape), tuple(strides))
