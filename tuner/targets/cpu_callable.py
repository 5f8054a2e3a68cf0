"""A tuned CPU kernel as a Python callable on numpy arrays."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tuner.errors import UsageError
from tuner.problem import Problem
from tuner.reference import NUMPY_DTYPES, Array, output_dtype
from tuner.runtime.allocation import aligned_empty, keep_freed_memory
from tuner.runtime.crew import Crew
from tuner.target import Script
from tuner.targets.cpu import CpuTarget, LoadedKernel


class CpuCallable:
    """C = A B of one problem, by one script. Safe to call from several threads: calls take turns."""

    def __init__(self, problem: Problem, kernel: LoadedKernel) -> None:
        """Starts the crew that the kernel's panels need."""
        self.problem = problem
        self._kernel = kernel
        self._crew = Crew(len(kernel.panels))
        self._turn = threading.Lock()

    def __call__(self, *inputs: Array, out: Array | None = None) -> Array:
        """Multiplies (a, b[, bias]), C-contiguous and shaped as the problem's layout stores them.

        Raises UsageError for a wrong number, shape, dtype or order, and for an ``out`` that cannot be written
        or shares memory with an input. Returns ``out``, or a new array.
        """
        expected = _inputs_of(self.problem)
        if len(inputs) != len(expected):
            names = ", ".join(name for name, _, _ in expected)
            raise UsageError(f"{self.problem.key}: found {len(inputs)} arrays, allowed {names}")
        for array, (name, shape, dtype) in zip(inputs, expected, strict=True):
            _check(name, array, shape, dtype)
        m, n, _ = self.problem.sizes
        result = aligned_empty((m, n), output_dtype(self.problem)) if out is None else out
        _check("out", result, (m, n), output_dtype(self.problem))
        _check_writable(result, {name: array for array, (name, _, _) in zip(inputs, expected, strict=True)})
        with self._turn:
            prepared = self._kernel.calls(self.problem, (*inputs, result))
            self._crew.repeat(prepared.calls, 1)
        return result


def load_callable(problem: Problem, script_text: str, threads: int) -> Callable[..., Array]:
    """Compiles a bound script into a callable. Raises CandidateError when it does not compile."""
    target = CpuTarget(threads)
    keep_freed_memory()
    artifact = target.compile(problem, Script.of(script_text))
    return CpuCallable(problem, target.load(problem, artifact))


def _inputs_of(problem: Problem) -> tuple[tuple[str, tuple[int, ...], "np.dtype[Any]"], ...]:
    m, n, k = problem.sizes
    dtype = NUMPY_DTYPES[problem.dtype]
    a = ("a", (k, m) if problem.layout == "tn" else (m, k), dtype)
    b = ("b", (n, k) if problem.layout == "nt" else (k, n), dtype)
    bias = (("bias", (n,), output_dtype(problem)),) if problem.epilogue == "bias_relu" else ()
    return (a, b, *bias)


def _check(name: str, array: Array, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> None:
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{name}: found {type(array).__name__}, allowed a numpy array")
    if array.shape != shape or array.dtype != dtype:
        raise UsageError(
            f"{name}: found {array.dtype} of shape {array.shape}, allowed {dtype} of shape {shape}"
        )
    if not array.flags.c_contiguous:
        raise UsageError(f"{name}: found strides {array.strides}, allowed a C-contiguous array")


def _check_writable(out: Array, inputs: dict[str, Array]) -> None:
    """The kernel writes by address: numpy's own guard does not stop it."""
    if not out.flags.writeable:
        raise UsageError("out: found a read-only array, allowed one that can be written")
    for name, array in inputs.items():
        if np.may_share_memory(out, array):
            raise UsageError(f"out: found memory of {name}, allowed memory of its own")
