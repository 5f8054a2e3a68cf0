"""oneDNN through torch: the baseline of bf16 on CPUs."""

from collections.abc import Callable
from functools import partial

import numpy as np

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.payload.reference import Array, Inputs
from tuner.runtime.cpu.guarded_arrays import placed_copy, placed_empty


class OneDnnMatmul:
    """The matmul of given bf16 inputs into bf16 by oneDNN, called through torch.

    Has a bf16 result, because torch has no f32 output for bf16 inputs. The arrays have the problem's
    alignment and no more.
    """

    def __init__(self, problem: Problem, inputs: Inputs, threads: int) -> None:
        """Sets torch's number of threads. Raises TunerError when torch is not installed."""
        try:
            import torch
        except ImportError as error:
            raise TunerError("baseline: bf16 wants oneDNN through torch, which is not installed") from error
        torch.set_num_threads(threads)
        self._torch = torch
        words = np.dtype(np.int16)
        offset = problem.offset_bytes
        placed = [placed_copy(x.view(words), offset) for x in (inputs.a, inputs.b)]
        placed.append(placed_empty(problem.c_shape, words, offset))
        self.operands = tuple(placed)
        a, b, self._output = (torch.from_numpy(x).view(torch.bfloat16) for x in placed)
        self._a = a.mT if problem.layout == "tn" else a
        self._b = b.mT if problem.layout == "nt" else b
        self._shape = (problem.rows, problem.sizes[1])
        self.name = f"oneDNN (torch {torch.__version__}, called from Python)"

    def repeat(self, times: int) -> None:
        """Computes the matmul of the same inputs ``times`` times."""
        run = self.once()
        for _ in range(times):
            run()

    def once(self) -> Callable[[], object]:
        """Returns a function that computes the matmul once, and does little else."""
        return partial(self._torch.matmul, self._a, self._b, out=self._output)

    @property
    def result(self) -> Array:
        """Returns the last C, widened from bf16 to f32; of a batch, with the shape (rows, n)."""
        widened: Array = self._output.float().numpy().reshape(self._shape)
        return widened
