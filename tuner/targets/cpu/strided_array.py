"""An argument of a group in memory: a strided view between guard bands."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.numpy_types import DTYPES
from tuner.mlir.group_arguments import GroupArgument
from tuner.runtime.cpu.guarded_arrays import GuardedArray

Array = npt.NDArray[Any]


class StridedArray:
    """A strided view whose memory lies between guard bands; what is between its rows is guarded, too."""

    def __init__(self, argument: GroupArgument) -> None:
        """Allocates the memory and fills it with NaN."""
        self._guarded = GuardedArray.placed((argument.span,), DTYPES[argument.element])
        self.memory = self._guarded.array  # all elements from the first to the last one
        self.view = view_of(self.memory, argument)
        self._before = self.memory
        self._has_gaps = self.view.size < self.memory.size

    @property
    def address(self) -> int:
        """Returns the address of the first element."""
        return self.memory.ctypes.data

    def poison(self) -> None:
        """Fills the memory with NaN (integers: with the least number), and draws the guard bands anew."""
        self._guarded.poison()
        self._keep()

    def fill_with(self, number: int) -> None:
        """Fills the memory with a number, and draws the guard bands anew."""
        self._guarded.fill_with(number)
        self._keep()

    def stray_bytes(self) -> int:
        """Returns how many bytes outside of the view have changed since the array was filled."""
        stray = self.guard_bytes()
        if self._has_gaps:
            was, now = self._before.view(np.uint8), self._without_view().view(np.uint8)
            stray += int(np.count_nonzero(was != now))
        return stray

    def guard_bytes(self) -> int:
        """Returns how many bytes of the guard bands have changed."""
        return self._guarded.stray_bytes()

    def element_address(self, place: tuple[int, ...]) -> int:
        """Returns the address of an element of the view."""
        offset = sum(at * step for at, step in zip(place, self.view.strides, strict=True))
        return self.address + int(offset)

    def _keep(self) -> None:
        if self._has_gaps:
            self._before = self._without_view()

    def _without_view(self) -> Array:
        copy = self.memory.copy()
        strides = self.view.strides
        np.lib.stride_tricks.as_strided(copy, self.view.shape, strides)[...] = np.ones((), copy.dtype)
        return copy


def view_of(memory: Array, argument: GroupArgument) -> Array:
    """Returns the view that an argument is of the memory from its first element on."""
    strides = [stride * memory.itemsize for stride in argument.strides]
    return np.lib.stride_tricks.as_strided(memory, argument.shape, strides)
