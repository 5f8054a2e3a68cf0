"""Functions of two arrays and an output: numpy's product, and a tuned kernel for arrays of one problem."""

from collections.abc import Callable
from typing import final

import numpy as np

from tuner.core.errors import UsageError
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.payload.reference import Array, output_dtype
from tuner.runtime.cpu.guarded_arrays import keep_freed_memory
from tuner.runtime.process_locks import between_forks
from tuner.targets.cpu.array_call import AddressCall, address_of
from tuner.targets.cpu.callable import CpuCallable
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator, LoadedKernel

MatmulCall = Callable[[Array, Array, Array | None], Array]  # (a, b, out or None) -> the product
TUNED_DTYPES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
# What takes over for an array that a kernel cannot take: (a, b, out, reason) -> the product
Otherwise = Callable[[Array, Array, Array | None, str], Array]
MISALIGNED = "an array at an address that is no multiple of {}"
NO_ARRAYS = "not two plain numpy arrays"
OUT = "out is read-only, not C-contiguous, of another type, or shares memory with an input"


def numpy_product(a: Array, b: Array, out: Array | None) -> Array:
    """Returns ``np.matmul`` of the arrays: the baseline. Raises UsageError for what is no array."""
    try:
        with between_forks():
            product: Array = np.matmul(a, b) if out is None else np.matmul(a, b, out=out)
    except TypeError as error:
        raise UsageError(f"matmul: {' '.join(str(error).split())}") from error
    return product


def problem_of(a: Array, b: Array, align: str) -> Problem | str:
    """Returns the problem that a product of two arrays is, or in one line why no kernel is tuned for it.

    An array that is stored transposed, such as the view ``b.T``, gives the layout "tn" or "nt".
    """
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        return NO_ARRAYS
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or 0 in (*a.shape, *b.shape):
        return f"shapes {a.shape} and {b.shape}"
    dtype = TUNED_DTYPES.get(a.dtype)
    if dtype is None or a.dtype != b.dtype:
        return f"types {a.dtype} and {b.dtype}"
    layout = "".join(
        "n" if each.flags.c_contiguous else "t" if each.flags.f_contiguous else "?" for each in (a, b)
    )
    if layout not in ("nn", "nt", "tn"):
        return "strides: not the layout nn, nt or tn"
    return Problem("matmul", (a.shape[0], b.shape[1], a.shape[1]), dtype, layout, align=align)


@final
class KernelCall:
    """A tuned kernel as a function of arrays of its problem, whose shapes, types and strides are known."""

    def __init__(self, problem: Problem, kernel: LoadedKernel, otherwise: Otherwise) -> None:
        """Takes what is called for arrays with too little alignment, and for outputs that kernels refuse."""
        self._problem = problem
        self._otherwise = otherwise
        self._shape, self._dtype = problem.c_shape, output_dtype(problem)
        self._mask = 0 if problem.align == "any" else int(problem.align) - 1
        is_single = len(kernel.partitions) == 1
        self._single = AddressCall(kernel) if is_single else None
        self._team = None if is_single else CpuCallable(problem, kernel)

    def __call__(self, a: Array, b: Array, out: Array | None) -> Array:
        """Returns the product, in ``out`` where it is given."""
        if out is None:
            result = np.empty(self._shape, self._dtype)
        elif self._fits(out, a, b):
            result = out
        else:
            return self._otherwise(a, b, out, OUT)
        at_a, at_b, at_c = address_of(a), address_of(b), address_of(result)
        if (at_a | at_b | at_c) & self._mask:
            return self._otherwise(a, b, out, MISALIGNED.format(self._mask + 1))
        if self._single is not None:
            self._single(at_a, at_b, at_c)
        elif self._team is not None:
            layout = self._problem.layout
            self._team(a.T if layout == "tn" else a, b.T if layout == "nt" else b, out=result)
        return result

    def _fits(self, out: Array, a: Array, b: Array) -> bool:
        return (
            type(out) is np.ndarray
            and (out.shape, out.dtype) == (self._shape, self._dtype)
            and out.flags.c_contiguous
            and out.flags.writeable
            and not np.may_share_memory(out, a)
            and not np.may_share_memory(out, b)
        )


@final
class KernelLoader:
    """Compiles bound scripts for this processor, and loads them as calls."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._compiler = CpuCompiler()

    def loaded(self, problem: Problem, script_text: str, otherwise: Otherwise) -> KernelCall:
        """Returns the call of a script. Raises CandidateError where it cannot be compiled or loaded."""
        keep_freed_memory()
        with between_forks():
            artifact = self._compiler.compile(problem, Script.of(script_text))
            kernel = CpuEvaluator(self._threads).load(problem, artifact)
        return KernelCall(problem, kernel, otherwise)
