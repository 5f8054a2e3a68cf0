"""Types of a program of a dynamic size n, or n and m, and what static programs take for smaller calls."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from tuner.core.device_programs import BufferType
from tuner.core.dynamic_sizes import LinearSize, Shape, Sizes, shape_at
from tuner.core.errors import UsageError
from tuner.core.serialization import Only, form

MASK = "mask"
NUMBER = "number"
USES = Only(f"{MASK} or {NUMBER}", lambda use: use in (MASK, NUMBER))
Numbers = tuple[int, ...]  # of_n and constant of a LinearSize, and of_m where that is not 0


def _numbers(size: LinearSize) -> Numbers:
    numbers = (size.of_n, size.constant, size.of_m)
    if size.of_m:
        return numbers
    return numbers[:2]


def _linear(numbers: Numbers) -> LinearSize:
    if len(numbers) not in (2, 3):
        raise UsageError(f"found {list(numbers)}, allowed a list of 2, or of 3")
    return LinearSize(*numbers)


SIZE = form(Numbers, _numbers, _linear)
SHAPE = form(
    tuple[Numbers, ...],
    lambda shape: tuple(map(_numbers, shape)),
    lambda shape: tuple(map(_linear, shape)),
)
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SizedType:
    """The type of an argument or result whose sizes may depend on n: its shape, and its element type."""

    shape: Shape = field(metadata=SHAPE)
    element: str

    @property
    def is_static(self) -> bool:
        """Returns whether the shape does not depend on n."""
        return all(length.is_static for length in self.shape)

    @property
    def buffer(self) -> BufferType:
        """Returns the type with a dynamic dimension (None) for each size that depends on n."""
        shape: list[int | None] = [None] * len(self.shape)
        for dimension, length in enumerate(self.shape):
            if length.is_static:
                shape[dimension] = length.constant
        return BufferType(self.element, tuple(shape))


@dataclass(frozen=True)
class SizedSignature:
    """The name and the types of a program of a dynamic size, and what its static programs take and return."""

    entry: str
    arguments: tuple[SizedType, ...]
    results: tuple[SizedType, ...]
    reads: tuple[int, ...]  # numbers of the arguments that a static program takes, in its order
    returns: tuple[int, ...]  # of each result: its number among those that a static program returns


@dataclass(frozen=True)
class SizeArgument:
    """An argument of the static program that the caller makes from the size n of a call."""

    use: Annotated[str, USES]  # MASK: 1 for each index below ``size``, else 0; NUMBER: ``size`` itself
    size: LinearSize = field(metadata=SIZE)
    shape: tuple[int, ...]
    element: str


def set_size(array: Array, argument: SizeArgument, size: Sizes) -> None:
    """Writes the number, or the mask, that ``argument`` of a static program has in a call of n = ``size``."""
    number = argument.size.at(size)
    if argument.use != MASK:
        array[...] = number
        return
    array[:number] = 1
    array[number:] = 0


def cut(array: Array, type_: SizedType, size: Sizes) -> Array:
    """Returns the view of a static program's result that is the result for n = ``size``, without padding."""
    if type_.is_static:
        return array
    return array[tuple(map(slice, shape_at(type_.shape, size)))]


class PaddedArray:
    """Memory for an argument of a static program; elements beyond the argument of a call are 0."""

    def __init__(self, type_: SizedType, size: Sizes, dtype: "np.dtype[Any]") -> None:
        self._shape = type_.shape
        self._array = np.zeros(shape_at(type_.shape, size), dtype)
        self._filled = (0,) * len(type_.shape)  # lengths up to which elements may differ from 0

    def filled(self, argument: Array, size: Sizes) -> Array:
        """Copies an argument of a call of n = ``size`` into the memory, with zeros beyond it.

        Returns the array that the static program takes; the next call overwrites it.
        """
        lengths = shape_at(self._shape, size)
        for dimension, (length, before) in enumerate(zip(lengths, self._filled, strict=True)):
            if length < before:
                beyond = [slice(None)] * len(lengths)
                beyond[dimension] = slice(length, before)
                self._array[tuple(beyond)] = 0
        self._array[tuple(map(slice, argument.shape))] = argument
        self._filled = lengths
        return self._array
