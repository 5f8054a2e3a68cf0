"""oneDNN through torch: bf16 into bf16, and i8 into i32."""

import ctypes
import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.payload.reference import Array, Inputs
from tuner.runtime.cpu.guarded_arrays import placed_copy, placed_empty
from tuner.targets.cpu.library_matmul import AbstractLibraryMatmul

VERSION = re.compile(r"MKL-DNN v([\d.]+)")  # in torch.__config__
# onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core_amx,...
KERNEL = re.compile(r",exec,cpu,(matmul|inner_product|gemm_api),([\w:.]*),")  # primitive, implementation


@final
class TorchOneDnnMatmul(AbstractLibraryMatmul):
    """The matmul of given bf16 inputs into bf16, or of i8 inputs into i32, by oneDNN, called through torch.

    bf16 has a bf16 result, because torch has no f32 output for bf16 inputs on CPUs. The arrays have the
    problem's alignment and no more.
    """

    def __init__(self, problem: Problem, inputs: Inputs, threads: int) -> None:
        """Sets torch's number of threads. Raises TunerError where torch is missing or cannot compute it."""
        try:
            import torch
        except ImportError as error:
            raise TunerError(
                f"baseline: {problem.dtype} wants oneDNN through torch, which is not installed"
            ) from error
        if problem.dtype == "i8" and problem.batch > 1:
            raise TunerError("baseline onednn-torch: torch multiplies no batch of i8")
        torch.set_num_threads(threads)
        is_bf16 = problem.dtype == "bf16"
        offset = problem.offset_bytes
        words = np.dtype(np.int16 if is_bf16 else np.int8)
        placed = [placed_copy(x.view(words), offset) for x in (inputs.a, inputs.b)]
        placed.append(placed_empty(problem.c_shape, np.dtype(np.int16 if is_bf16 else np.int32), offset))
        self.operands = tuple(placed)
        a, b, self._output = (torch.from_numpy(x) for x in placed)
        if is_bf16:
            a, b, self._output = (x.view(torch.bfloat16) for x in (a, b, self._output))
        a = _transposed(a) if problem.layout == "tn" else a
        b = _transposed(b) if problem.layout == "nt" else b
        multiply = torch.matmul if is_bf16 else torch._int_mm  # noqa: SLF001 - the only product of i8
        self._multiply: Callable[[], object] = partial(multiply, a, b, out=self._output)
        self._shape = (problem.rows, problem.sizes[1])
        result = ", bf16 result" if is_bf16 and not problem.output else ""
        self.name = f"{_onednn(torch, self._multiply)}torch {torch.__version__} (called from Python{result})"

    def repeat(self, times: int) -> None:
        """Computes the matmul of the same inputs ``times`` times."""
        run = self.once()
        for _ in range(times):
            run()

    def once(self) -> Callable[[], object]:
        """Returns a function that computes the matmul once, and does little else."""
        return self._multiply

    @property
    def result(self) -> Array:
        """Returns the last C, bf16 widened to f32; of a batch, with the shape (rows, n)."""
        output = self._output.float() if self._output.is_floating_point() else self._output
        widened: Array = output.numpy().reshape(self._shape)
        return widened


def _transposed(matrices: Any) -> Any:
    """Returns a view of a tensor with its last two dimensions exchanged.

    A single row or column is reshaped: torch 2.13 misreads a transposed row of i8, whose strides are equal.
    """
    *lead, rows, columns = matrices.shape
    return matrices.view(*lead, columns, rows) if 1 in (rows, columns) else matrices.mT


def _onednn(torch: Any, multiply: Callable[[], object]) -> str:
    """Returns "oneDNN 3.12.0 brg_matmul:avx512_core through "; "" where torch does not call it."""
    version, kernel = VERSION.search(torch.__config__.show()), _kernel(torch, multiply)
    return f"oneDNN {version[1]} {kernel} through " if version and kernel else ""


def _kernel(torch: Any, multiply: Callable[[], object]) -> str:
    """Returns oneDNN's kernel of one call, as its log prints it on the standard output; "": not called."""
    library = ctypes.CDLL(None)
    output = os.dup(1)
    with tempfile.TemporaryFile() as log:
        library.fflush(None)
        os.dup2(log.fileno(), 1)
        try:
            with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
                multiply()
            library.fflush(None)
        finally:
            os.dup2(output, 1)
            os.close(output)
        log.seek(0)
        found = KERNEL.search(log.read().decode(errors="replace"))
    return (found[2] or found[1]) if found else ""
