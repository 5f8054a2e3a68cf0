"""A library of another distribution that may be a baseline: numpy's matmul."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tuner.core.problem import Problem
from tuner.payload.reference import Inputs
from tuner.targets.cpu.baseline_libraries import BaselineLibrary
from tuner.targets.cpu.blas import AbstractLibraryMatmul


@final
class NumpyMatmul(AbstractLibraryMatmul):
    """``numpy.matmul`` of inputs in layout nn."""

    def __init__(self, problem: Problem, inputs: Inputs, threads: int) -> None:
        self.name = f"numpy {np.__version__}"
        self.operands = (inputs.a, inputs.b, np.zeros((problem.rows, problem.sizes[1]), inputs.a.dtype))

    def repeat(self, times: int) -> None:
        a, b, c = self.operands
        for _ in range(times):
            np.matmul(a, b, out=c)

    def once(self) -> Callable[[], object]:
        a, b, c = self.operands
        return lambda: np.matmul(a, b, out=c)

    @property
    def result(self) -> npt.NDArray[Any]:
        return self.operands[2]


LIBRARY = BaselineLibrary(
    ("f32",), "pip install numpy", recorded="numpy ", matmul=f"{__name__}:NumpyMatmul", modules=("numpy",)
)
WRONG = 3


def raises(problem: Problem, inputs: Inputs, threads: int) -> AbstractLibraryMatmul:
    """A function with a defect."""
    raise KeyError("matmul")


BROKEN = BaselineLibrary(
    ("f32",), "pip install numpy", recorded="broken ", matmul=f"{__name__}:raises", modules=("numpy",)
)
