"""A matmul for each m of a range as a Python callable, by tuned kernels of a few numbers of rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from tuner.analysis.row_ranges import BlockCall, RowCover, RowRange
from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.payload.reference import Array
from tuner.targets.signature import KernelSignature

Kernel = Callable[..., Any]


@final
class RangeKernel:
    """Tuned CPU kernels of one n and k that compute C = A B for each number of rows of a range.

    Nothing is compiled at a call. For a number of rows m that no kernel has, several kernels compute some
    rows each, the last one perhaps with rows of zeros added: ``cover.calls(m)`` chooses them by their
    measured times.
    """

    def __init__(self, row_range: RowRange, cover: RowCover, kernels: Sequence[Kernel]) -> None:
        """Takes loaded kernels in the order of the cover's blocks."""
        self.row_range = row_range
        self.cover = cover
        self._kernels = tuple(kernels)
        arguments = row_range.problem.after_product.arguments
        # inputs that have a row for each of C: A, and of the epilogue those like an addend
        self._with_rows = (
            0,
            *(number for number, argument in enumerate(arguments, 2) if argument.axes == "mn"),
        )

    def __repr__(self) -> str:
        return f"<kernel of {self.row_range.text}: {len(self._kernels)} numbers of rows are tuned>"

    def __call__(self, *inputs: Array, out: Array | None = None) -> Array:
        """Multiplies: returns C for (a, b, arguments of the epilogue); the m of a call is that of A.

        Args:
            inputs: C-contiguous numpy arrays of the range's n, k and dtypes, as the layout stores them.
            out: array for the result; None: a new array. Of the epilogue "accumulate" it is needed.

        Returns:
            ``out``, or a new array.

        Raises:
            UsageError: an m outside of the range, and what a kernel of ``tuner.load_best`` refuses.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> rows = tuner.RowRange(tuner.Matmul(24, 64, 32))
            >>> kernel = tuner.load_range(tuner.tune_many(rows, target="cpu", trials=9))
            >>> kernel(np.ones((5, 32), np.float32), np.ones((32, 64), np.float32))[4, 63]
            np.float32(32.0)
        """
        problem = self._problem_of(inputs, out)
        result = KernelSignature.of(problem).result(inputs, out)
        for call in self.cover.calls(problem.sizes[0]):
            self._run(call, inputs, result)
        return result

    def _problem_of(self, inputs: tuple[Array, ...], out: Array | None) -> Problem:
        largest = self.row_range.problem
        KernelSignature.of(largest).require_call(len(inputs), out)
        rows = inputs[0].shape[0] if isinstance(inputs[0], np.ndarray) and inputs[0].ndim else 0
        if not self.row_range.least <= rows <= self.row_range.greatest:
            allowed = f"{self.row_range.least} to {self.row_range.greatest}"
            raise UsageError(f"a: found {rows} rows, allowed {allowed}")
        return replace(largest, sizes=(rows, *largest.sizes[1:]))

    def _run(self, call: BlockCall, inputs: tuple[Array, ...], result: Array) -> None:
        size = self.cover.blocks[call.block].rows
        kernel = self._kernels[call.block]
        parts = list(inputs)
        for position in self._with_rows:
            parts[position] = _rows_of(inputs[position], call, size)
        if call.rows == size:
            kernel(*parts, out=result[call.row : call.row + size])
            return
        padded = _rows_of(result, call, size)
        kernel(*parts, out=padded)
        result[call.row : call.row + call.rows] = padded[: call.rows]


def _rows_of(array: Array, call: BlockCall, size: int) -> Array:
    """Returns the rows of ``array`` that a call computes, followed by zeros up to ``size`` rows."""
    if call.rows == size:
        return array[call.row : call.row + size]
    padded = np.zeros((size, *array.shape[1:]), array.dtype)
    padded[: call.rows] = array[call.row : call.row + call.rows]
    return padded
