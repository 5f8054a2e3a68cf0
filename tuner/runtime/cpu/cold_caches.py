"""Cold caches for timed calls: arrays are evicted, or each call reads another copy of the weights."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from tuner.core.problem import COLD, WEIGHTS_COLD, Problem
from tuner.runtime.cpu.jit import CompiledFunction, PackedArguments, shipped_module

LINE_BYTES = 64
# Reading so many bytes of other weights, in sizes of a cache, evicts a weight from that cache.
EVICTING_L2S = 2
EVICTING_L3S = 3
COPIES_LIMIT = 256  # of small weights that are read one after the other; a power of two
WEIGHTS = slice(1, 2)  # of the operands A, B[, bias], C
EVICTED = {WEIGHTS_COLD: WEIGHTS, COLD: slice(None)}  # Problem.cache -> operands
ENTRY = "rotated_call"


class Eviction:
    """A callable that evicts arrays from the caches of all cores (Intel SDM, CLFLUSH)."""

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """Takes contiguous arrays; each call of the object evicts them, and does not change them."""
        self._evict = CompiledFunction(shipped_module("evict", "evict").addresses["evict"])
        self.arrays = tuple(arrays)
        self._arguments = [PackedArguments(*lines_of(array)) for array in arrays]

    def __call__(self) -> None:
        for arguments in self._arguments:
            self._evict(arguments)


def eviction_of(problem: Problem, operands: Sequence[npt.NDArray[Any]]) -> Eviction | None:
    """Returns the eviction of a problem's operands to call before each timed call.

    None for warm caches, and for a fusion with cold weights, whose ``RotatedCalls`` read other copies.
    """
    if problem.text and problem.cache == WEIGHTS_COLD:
        return None
    evicted = EVICTED.get(problem.cache)
    if evicted is None:
        return None
    return Eviction(operands[evicted])


def lines_of(array: npt.NDArray[Any]) -> tuple[int, int]:
    """Returns the address of an array's first cache line, and the number of lines that the array touches."""
    start = array.ctypes.data // LINE_BYTES * LINE_BYTES
    end = array.ctypes.data + array.nbytes
    return start, -(-(end - start) // LINE_BYTES)


# Calls of a function whose arguments change from call to call: copies of weights that have left the L2 cache.
#
# The weights of a model come from the last level of cache, or from memory, since all others were read since
# the call before. A kernel that is timed in a loop finds them in the second level. With copies that together
# are larger than that level, one used after the other, each call finds its copy evicted.


class RotatedCalls:
    """A compiled function that calls ``function`` with the next of ``arguments`` each time, round-robin.

    So each call reads another copy of the weights, which the caches do not hold. ``call``: its (function
    address, argument address), as a thread team takes them. Raises ValueError unless the number of arguments
    is a power of two.
    """

    def __init__(self, function: int, arguments: tuple[PackedArguments, ...]) -> None:
        count = len(arguments)
        if not count or count & (count - 1):
            raise ValueError(f"arguments: found {count}, allowed a power of two")
        addresses = [argument.address for argument in arguments]
        self._state = (ctypes.c_uint64 * (3 + count))(0, count - 1, function, *addresses)
        self._arguments = arguments
        self._state_argument = PackedArguments(ctypes.addressof(self._state))
        code = shipped_module("rotated_calls", ENTRY)
        self.call = (code.addresses[ENTRY], self._state_argument.address)
