"""Eviction of arrays from a processor's caches, to time calls whose operands come from memory."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy.typing as npt

from tuner.core.problem import COLD, WEIGHTS_COLD, Problem
from tuner.mlir.jit import CompiledFunction, JittedModule, PackedArguments

LINE_BYTES = 64
WEIGHTS = slice(1, 2)  # of the operands A, B[, bias], C
EVICTED = {WEIGHTS_COLD: WEIGHTS, COLD: slice(None)}  # Problem.cache -> operands


class Eviction:
    """Evicts arrays from all caches of the processor, those of other cores included: an action to call.

    Intel SDM, CLFLUSH.
    """

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        """The arrays are contiguous; they are evicted, not changed, by each call."""
        self._evict = CompiledFunction(_compiled().addresses["evict"])
        self.arrays = tuple(arrays)
        self._arguments = [PackedArguments(*lines_of(each)) for each in arrays]

    def __call__(self) -> None:
        """Evicts the arrays; returns when it is done."""
        for arguments in self._arguments:
            self._evict(arguments)


def eviction_of(problem: Problem, operands: Sequence[npt.NDArray[Any]]) -> Eviction | None:
    """Returns the eviction to run before each timed call of a problem, of what ``Problem.cache`` says.

    ``operands``: A, B[, bias], C. None where caches stay warm, and for a group of operations whose weights
    are cold: each call reads another copy.
    """
    if problem.group and problem.cache == WEIGHTS_COLD:
        return None
    evicted = EVICTED.get(problem.cache)
    return None if evicted is None else Eviction(operands[evicted])


@cache
def _compiled() -> JittedModule:
    return JittedModule((files("tuner.runtime.cpu") / "evict.mlir").read_text(), ("evict",))


def lines_of(array: npt.NDArray[Any]) -> tuple[int, int]:
    """Returns the address of the first cache line of an array, and how many lines the array touches."""
    start = array.ctypes.data // LINE_BYTES * LINE_BYTES
    end = array.ctypes.data + array.nbytes
    return start, -(-(end - start) // LINE_BYTES)
