"""Parameters of a kernel, read from memref descriptors, or from the parameter bytes of a driver launch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuner.mlir.bindings import Op, Type, ir
from tuner.mlir.rewrite.located_error import unsupported
from tuner.programs.interpret import flat_memory
from tuner.programs.interpret.buffer_view import BufferView
from tuner.programs.interpret.element_types import INDEX, Array, ElementType, UnknownTypeError, element_type
from tuner.programs.interpret.lane_grid import uniform

WORD_BYTES, HEADER_WORDS = 8, 3  # of a memref descriptor: allocated pointer, aligned pointer, offset


@dataclass(frozen=True)
class MemrefLayout:
    """Sizes, strides and offset of a memref type, in elements; None for each number that is dynamic."""

    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    offset: int | None

    @property
    def word_count(self) -> int:
        """Returns the number of 8-byte words of a descriptor: two pointers, offset, sizes, strides."""
        return HEADER_WORDS + 2 * len(self.sizes)

    def words(self, address: int) -> list[int]:
        """Returns the words of a static memref's descriptor; ``address`` is the value of both pointers.

        Raises ValueError if a size, a stride or the offset is dynamic.
        """
        given = (self.offset, *self.sizes, *self.strides)
        known = [number for number in given if number is not None]
        if len(known) != len(given):
            raise ValueError(f"found an address alone, allowed a descriptor: sizes {self.sizes}")
        return [address, address, *known]


@dataclass(frozen=True)
class LaneParameter:
    """One parameter of a kernel: its element type, and the layout if it is a memref.

    ``layout`` is None for a number or a vector.
    """

    element: ElementType
    layout: MemrefLayout | None

    def at(self, address: int) -> BufferView | Array:
        """Returns the argument that a memref descriptor at ``address`` in host memory describes.

        A number or vector is read from a memref of rank 0, into an array of shape (1, 1, *vector).
        """
        if self.layout is not None:
            return _view(_text(address, self.layout.word_count), self.element)
        first = np.full((1, 1, *[1] * len(self.element.shape)), _text(address, 2)[1])
        return flat_memory.read(self.element.dtype, first + self.element.offsets_bytes)

    def take(self, contents: list[bytes], *, is_bare: bool) -> BufferView | Array:
        """Removes this parameter's bytes from the front of ``contents``; returns the argument in them.

        Args:
            contents: bytes per driver parameter.
            is_bare: True: a memref is passed as its address alone; False: as all words of its descriptor.

        Raises ValueError for too few bytes of a number or a vector, and for a memref passed as its address
        alone whose type has a dynamic size, stride or offset.
        """
        if self.layout is None:
            return self._number(contents.pop(0))
        if is_bare:
            return _view(self.layout.words(int.from_bytes(contents.pop(0), "little")), self.element)
        count = self.layout.word_count
        words = [int.from_bytes(contents.pop(0), "little", signed=True) for _ in range(count)]
        return _view(words, self.element)

    def _number(self, content: bytes) -> Array:
        if len(content) < self.element.size_bytes - _unused(self.element):
            raise ValueError(f"found {len(content)} bytes, allowed {self.element.size_bytes}")
        size = self.element.dtype.itemsize
        places = (self.element.offsets_bytes // size)[None, None]
        numbers = np.frombuffer(content[: len(content) // size * size], self.element.dtype)
        return np.asarray(numbers[places])


def parameter_of(op: Op, kind: Type) -> LaneParameter:
    """Returns how a kernel reads a parameter of MLIR type ``kind``; ``op`` gives the location for the error.

    Raises CandidateError(COMPILE) for an unsupported type.
    """
    is_memref = isinstance(kind, ir.MemRefType)
    try:
        element = element_type(kind.element_type if is_memref else kind)
    except UnknownTypeError:
        raise unsupported(op, f"a parameter {kind}", "memrefs and numbers of 1 to 64 bits") from None
    return LaneParameter(element, _layout(kind) if is_memref else None)


def arguments_of(parameters: Sequence[LaneParameter], contents: Sequence[bytes]) -> list[BufferView | Array]:
    """Converts the parameter bytes of a driver launch to memrefs, and arrays for numbers and vectors.

    A memref is one address if there is one item of ``contents`` per parameter, else all words of its
    descriptor. Raises ValueError for bytes, or a number of items, that do not fit ``parameters``.
    """
    rest = list(contents)
    is_bare = len(rest) == len(parameters)
    count = sum(1 if is_bare or each.layout is None else each.layout.word_count for each in parameters)
    if len(rest) != count:
        raise ValueError(f"found {len(rest)} parameters, allowed {count}")
    return [parameter.take(rest, is_bare=is_bare) for parameter in parameters]


def _layout(kind: Type) -> MemrefLayout:
    strides, offset = kind.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = (None if kind.is_dynamic_dim(axis) else kind.shape[axis] for axis in range(kind.rank))
    known = [None if number == unknown else number for number in (*strides, offset)]
    return MemrefLayout(tuple(sizes), tuple(known[:-1]), known[-1])


def _view(words: Sequence[int], element: ElementType) -> BufferView:
    rank = (len(words) - HEADER_WORDS) // 2
    _, aligned, offset = words[:HEADER_WORDS]
    sizes, strides = words[HEADER_WORDS : HEADER_WORDS + rank], words[HEADER_WORDS + rank :]
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    first = aligned + offset * element.size_bytes
    extent = (last + 1) * element.size_bytes if math.prod(sizes) > 0 else 0
    return BufferView(
        uniform(first),
        origin=uniform(aligned),
        low=uniform(first),
        high=uniform(first + extent),
        sizes=tuple(map(uniform, sizes)),
        strides=tuple(map(uniform, strides)),
    )


def _text(address: int, count: int) -> list[int]:
    found: list[int] = flat_memory.read(INDEX, address + WORD_BYTES * np.arange(count)).tolist()
    return found


def _unused(element: ElementType) -> int:
    """Returns the number of padding bytes after the last number of a vector."""
    last = int(element.offsets_bytes.max(initial=0)) + element.dtype.itemsize
    return element.size_bytes - last
