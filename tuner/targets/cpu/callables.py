"""A tuned CPU kernel as a Python callable on numpy arrays."""

import warnings
from collections.abc import Callable

from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.core.problem_classes import PackedProblem
from tuner.payload.reference import Array
from tuner.runtime.cpu.memory import address_of, keep_freed_memory, placed_empty
from tuner.runtime.process_state import LoadedCode
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.loaded_kernel import AddressCall, LoadedKernel
from tuner.targets.cpu.packed_callables import PackingKernel
from tuner.targets.signature import LOAD_AGAIN, KernelSignature, kernel_text


class CpuCallable(LoadedCode):
    """A tuned CPU kernel of one problem as a Python callable on numpy arrays: C = A B.

    Several threads may call it; where the kernel itself has several, a lock serialises calls. The first call
    with an array that has less alignment than the problem's gives a UserWarning; the result is right.
    """

    load_again = LOAD_AGAIN

    def __init__(self, problem: Problem, kernel: LoadedKernel, origin: str = "") -> None:
        """Starts a team of as many threads as the kernel has partitions of C.

        ``origin``: text for ``repr`` on where the kernel comes from, such as its trial with its time.
        """
        self.problem = problem
        self.origin = origin
        self._kernel = kernel
        self._signature = KernelSignature.of(problem, placed_empty)
        self._call = AddressCall(kernel)
        self._align_bytes = 1 if problem.align == "any" else int(problem.align)  # 1: nothing to report

    def __repr__(self) -> str:
        return kernel_text(self, len(self._kernel.parts))

    def __call__(self, *inputs: Array, out: Array | None = None) -> Array:
        """Multiplies: returns C of the problem for (a, b, arguments of the epilogue).

        Args:
            inputs: C-contiguous numpy arrays of the problem's shapes and dtypes, as the layout stores them.
            out: array for the result, which shares no memory with an input; None: a new array. Of the
                epilogue "accumulate" it is needed: the product is added to it.

        Returns:
            ``out``, or a new array.

        Raises:
            UsageError: a wrong number, shape, dtype or memory order, an ``out`` that cannot be written or
                shares memory with an input, or a missing one that is added to.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> kernel = tuner.load_best(tuner.Matmul(64, 64, 64), target="cpu")
            >>> a, b, c = (np.ones((64, 64), np.float32) for _ in range(3))
            >>> kernel(a, b, out=c) is c
            True
        """
        result = self._signature.result(inputs, out)
        addresses = [address_of(array) for array in (*inputs, result)]
        if self._align_bytes > 1:
            self._report_alignment(addresses)
        self._call(*addresses)
        return result

    def _report_alignment(self, addresses: list[int]) -> None:
        pairs = zip(self._signature.names, addresses, strict=True)
        lacking = [name for name, address in pairs if address % self._align_bytes]
        if not lacking:
            return
        self._align_bytes = 1
        warnings.warn(
            f"{' and '.join(lacking)}: not at a multiple of {self.problem.align} bytes, as the kernel was "
            "timed: it may be slower; align the array, or tune with align='any'",
            stacklevel=3,
        )


def load_callable(problem: Problem, script_text: str, threads: int, origin: str = "") -> Callable[..., Array]:
    """Compiles and loads a bound script as a Python function of numpy arrays.

    For a problem with constant weights, returns a ``PackingKernel``, whose ``pack`` returns the function.
    ``threads``: at most; ``origin``: text on where the script comes from. Raises CandidateError where a stage
    fails.
    """
    keep_freed_memory()
    artifact = CpuCompiler().compile(problem, Script.of(script_text))
    kernel = CpuEvaluator(threads).load(problem, artifact)
    if isinstance(problem, PackedProblem):
        return PackingKernel(problem, kernel, origin)
    return CpuCallable(problem, kernel, origin)
