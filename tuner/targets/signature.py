"""Input and output arrays that a tuned kernel takes (``KernelSignature``), and checks of a call's arrays."""

from typing import Any, final

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.core.serialization import count_text
from tuner.payload.packed_weights import Allocate
from tuner.payload.reference import NUMPY_DTYPES, Array, output_dtype
from tuner.runtime.arrays import ExpectedArray, require_distinct, require_writable

LOAD_AGAIN = "tuner.load_best(problem)"  # in another process


def kernel_text(kernel: Any, threads: int = 0) -> str:
    """Returns the ``repr`` of a kernel: class, problem, number of threads and origin.

    ``kernel``: an object with the attributes ``problem`` and ``origin``. ``threads`` 0: a kernel on a GPU;
    the text then has no threads.
    """
    of_threads = f", {count_text(threads, 'thread')}" if threads else ""
    origin = f"; {kernel.origin}" if kernel.origin else ""
    return f"{type(kernel).__name__}({kernel.problem.key}{of_threads}{origin})"


@final
class KernelSignature:
    """The input arrays and the output array that a kernel takes, and the checks of the arrays of a call."""

    def __init__(
        self,
        problem: Problem,
        inputs: tuple[ExpectedArray, ...],
        call: str,  # with an output array, for a hint: "kernel(a, b, out=c)"
        allocate: Allocate = np.empty,  # makes the output array of a call without one
        *,
        copies_inputs: bool = False,  # the output may then be one of the inputs
    ) -> None:
        self.problem = problem
        self.inputs = inputs
        self.output = ExpectedArray("out", problem.c_shape, output_dtype(problem))
        self._call = call
        self._allocate = allocate
        self._copies_inputs = copies_inputs
        self._shape = problem.c_shape
        self._is_added_to = problem.after_product.reads_output

    @classmethod
    def of(
        cls, problem: Problem, allocate: Allocate = np.empty, *, copies_inputs: bool = False
    ) -> "KernelSignature":
        """Returns the signature of a kernel that takes all inputs of a problem at each call."""
        *inputs, _ = problem.arguments
        expected = (
            ExpectedArray(argument.name, argument.shape, NUMPY_DTYPES[argument.dtype]) for argument in inputs
        )
        return cls(problem, tuple(expected), "kernel(a, b, out=c)", allocate, copies_inputs=copies_inputs)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the inputs, then "out"."""
        return tuple(expected.name for expected in (*self.inputs, self.output))

    def require_call(self, count: int, out: object) -> None:
        """Raises UsageError for another number of inputs, and if ``out`` is None but is added to."""
        if count != len(self.inputs):  # a problem's key takes longer than all checks
            require_count(self.problem.key, self.inputs, count)
        if out is None and self._is_added_to:
            raise UsageError("out: is missing, but is added to", self._call)

    def result(self, inputs: tuple[Any, ...], out: Any) -> Array:
        """Returns the output array of a call: ``out``, or a new array if that is None; checks all arrays.

        The arrays are in host memory. Raises UsageError for a wrong number, shape, type or memory order of
        arrays, and for an ``out`` that is read-only, shares memory with an input, or is missing where it is
        added to.
        """
        self.require_call(len(inputs), out)
        for array, expected in zip(inputs, self.inputs, strict=True):
            if not expected.fits(array):
                expected.checked(array)
        if out is None:
            return self._allocate(self._shape, self.output.dtype)
        if not self.output.fits(out):
            self.output.checked(out)
        require_writable("out", is_read_only=not out.flags.writeable)
        for array, expected in zip(inputs, self.inputs, strict=True):
            is_shared = not self._copies_inputs and np.may_share_memory(out, array)
            require_distinct("out", expected.name, is_shared=is_shared)
        result: Array = out
        return result

    def require_offsets(self, inputs: tuple[Array, ...]) -> None:
        """Raises UsageError if the offsets among the host arrays of a grouped_matmul fall or leave 0 to m.

        Does nothing for other problems.
        """
        if not self.problem.groups:
            return
        offsets = inputs[2].astype(np.int64)
        least = int(np.diff(offsets).min())
        if least < 0 or offsets[0] < 0 or offsets[-1] > self.problem.rows:
            found = f"found {offsets[0]} to {offsets[-1]}"
            if least < 0:
                found = "found numbers that fall"
            allowed = f"allowed numbers from 0 to {self.problem.rows} that do not fall"
            raise UsageError(f"offsets: {found}, {allowed}")


def require_count(subject: str, expected: tuple[ExpectedArray, ...], count: int) -> None:
    """Raises UsageError, which begins with ``subject``, if ``count`` arrays are not as many as expected."""
    if count != len(expected):
        names = ", ".join(array.name for array in expected)
        raise UsageError(f"{subject}: found {count} arrays, allowed {names}")
