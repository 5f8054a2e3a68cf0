"""cuBLAS as a judge takes it: with the interface of kernels."""

from collections.abc import Callable, Mapping
from typing import final

from tuner.core.problem import Problem
from tuner.runtime.cuda.cublas import Cublas


@final
class LoadedCublas:
    """cuBLAS's matmul of one problem, with the interface of ``LoadedKernels``."""

    def __init__(self, library: Cublas, problem: Problem) -> None:
        self.name = library.name
        self._library = library
        self._problem = problem

    def work(self, addresses: Mapping[str, int]) -> Callable[[int], None]:
        """Returns the function that enqueues one run on a stream, given the addresses of A, B and C."""
        a, b, c = (addresses[name] for name in "abc")
        return lambda stream: self._library.multiply(self._problem, a, b, c, stream)
