"""Which elements of its buffer a memref names, where its type tells: so halves of a buffer are told apart.

All views but ``memref.view`` keep the address that their buffer begins at: offset and strides of a view's
type, however many views there are in between, count the elements from there.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.passes.buffer_roots import SOURCES, VIEWS
from tuner.mlir.passes.carried_values import is_carried

KEEP_THE_START = VIEWS - {"memref.view"}  # which moves it by bytes
LEAVES_ITS_SOURCE = "memref.reinterpret_cast"  # may name elements that its source does not
MAX_TERMS = 1000  # of a comparison; for row-major arrays a few are enough


@dataclass(frozen=True)
class Region:
    """The elements ``offset + sum(index[d] * strides[d])`` for ``0 <= index[d] < sizes[d]``."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # elements, of any sign

    def overlaps(self, other: "Region") -> bool:
        """Tells whether the two share an element; True also where that takes too long to find out.

        The difference between an element of one and one of the other is a sum of strides, each taken from 0
        to some number of times; they share an element where it can be 0.
        """
        if 0 in self.sizes or 0 in other.sizes:
            return False
        counts: Counter[int] = Counter()  # of a stride: how often it may be taken, by both together
        for region in (self, other):
            for stride, size in zip(region.strides, region.sizes, strict=True):
                counts[abs(stride)] += size - 1
        del counts[0]
        return _may_be_sum(other.last - self.first, sorted(counts.items(), reverse=True))

    @property
    def first(self) -> int:
        """Returns the least element, if there is any."""
        return self.offset + sum(min(0, each) for each in self._spans())

    @property
    def last(self) -> int:
        """Returns the greatest element, if there is any."""
        return self.offset + sum(max(0, each) for each in self._spans())

    def _spans(self) -> list[int]:
        return [(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)]


@dataclass(frozen=True)
class Part:
    """What is touched of a buffer."""

    root: Any
    region: Region | None = None  # None: unknown, perhaps all of it

    def overlaps(self, other: "Part") -> bool:
        """Tells whether the two may share memory."""
        if self.root != other.root:
            return False
        return self.region is None or other.region is None or self.region.overlaps(other.region)


def region_of(buffer: Any) -> Region | None:
    """Returns the elements of its buffer that a memref names, or more of them; None where that is not known.

    A view of dynamic place is somewhere in the view around it. What control flow hands on may be any view.
    """
    found = _of_type(buffer.type)
    while (op := _op_of(buffer)) is not None and op.name in KEEP_THE_START:
        if op.name == LEAVES_ITS_SOURCE and found is None:
            return None
        buffer = op.operands[0]
        found = found or _of_type(buffer.type)
    is_root = not is_carried(buffer) if op is None else op.name in SOURCES
    return found if is_root else None


def _may_be_sum(target: int, steps: list[tuple[int, int]]) -> bool:
    """Tells whether ``target`` is a sum of (step, how often at most), the largest step first."""
    targets = {target}
    for number, (step, count) in enumerate(steps):
        rest = sum(each * times for each, times in steps[number + 1 :])
        choices = [(t, range(max(0, -((rest - t) // step)), min(count, t // step) + 1)) for t in targets]
        if sum(len(times) for _, times in choices) > MAX_TERMS:
            return True
        targets = {t - step * times for t, choice in choices for times in choice}
    return 0 in targets


def _op_of(value: Any) -> Any:
    """Returns the operation that a value is a result of; None for an argument of a block."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _of_type(kind: Any) -> Region | None:
    if not isinstance(kind, ir.MemRefType) or not kind.has_static_shape:
        return None
    try:
        strides, offset = kind.get_strides_and_offset()
    except RuntimeError:  # a layout without strides
        return None
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if unknown in (offset, *strides):
        return None
    return Region(offset, tuple(kind.shape), tuple(strides))
