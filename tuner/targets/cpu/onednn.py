"""oneDNN through torch: the baseline of bf16 on CPUs."""

import numpy as np

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.payload.reference import Array, Inputs


class OneDnnMatmul:
    """A torch.matmul of bf16 inputs into bf16: torch has no f32 output for bf16 inputs."""

    def __init__(self, problem: Problem, inputs: Inputs, threads: int) -> None:
        """Sets torch's number of threads. Raises TunerError when torch is not installed."""
        try:
            import torch
        except ImportError as error:
            raise TunerError("baseline: bf16 wants oneDNN through torch, which is not installed") from error
        torch.set_num_threads(threads)
        self._torch = torch
        a, b = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (inputs.a, inputs.b))
        self._a = a.mT if problem.layout == "tn" else a
        self._b = b.mT if problem.layout == "nt" else b
        self._output = torch.empty(problem.c_shape, dtype=torch.bfloat16)
        self._shape = (problem.rows, problem.sizes[1])
        self.name = f"oneDNN (torch {torch.__version__}, called from Python)"

    def repeat(self, times: int) -> None:
        """Computes the matmul ``times`` times."""
        for _ in range(times):
            self._torch.matmul(self._a, self._b, out=self._output)

    @property
    def result(self) -> Array:
        """Returns C of the last call, widened from bf16 to f32; a batch as (rows, n)."""
        widened: Array = self._output.float().numpy().reshape(self._shape)
        return widened
