"""oneDNN's matmul through PyTorch as a baseline, for types that PyTorch's build of it multiplies."""

import ctypes
import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from tuner.core.dtypes import number_type
from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.payload.reference import Array, Inputs
from tuner.runtime.cpu.memory import placed_copy, placed_empty
from tuner.targets.cpu import blas

TORCH_VERSION = re.compile(r"MKL-DNN v([\d.]+)")  # in torch.__config__
# onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core_amx,...
KERNEL = re.compile(r",exec,cpu,(matmul|inner_product|gemm_api),([\w:.]*),")  # primitive, implementation


@final
class TorchOneDnnMatmul(blas.AbstractLibraryMatmul):
    """oneDNN's matmul through PyTorch: bf16 or f16 into the same type, or i8 into i32."""

    def __init__(self, problem: Problem, inputs: Inputs, threads: int) -> None:
        """Copies the inputs into tensors, and sets PyTorch's number of threads.

        Raises TunerError for a batch of i8, which PyTorch cannot multiply.
        """
        import torch

        if problem.dtype == "i8" and problem.batch > 1:
            raise TunerError("torch multiplies no batch of i8")
        torch.set_num_threads(threads)
        type_ = number_type(problem.dtype)
        offset = problem.offset_bytes
        if type_.is_float:  # numpy lacks bf16: its bits
            words: np.dtype[Any] = np.dtype(np.int16)
            result_words = words
            multiply = torch.matmul
        else:
            words = np.dtype(np.int8)
            result_words = np.dtype(np.int32)
            multiply = torch._int_mm  # noqa: SLF001 - the only product of i8
        placed = [placed_copy(x.view(words), offset) for x in (inputs.a, inputs.b)]
        placed.append(placed_empty(problem.c_shape, result_words, offset))
        self.operands = tuple(placed)
        a, b, self._output = map(torch.from_numpy, placed)
        if type_.is_float:
            element = getattr(torch, type_.numpy_name)
            a, b, self._output = (x.view(element) for x in (a, b, self._output))
        if problem.layout == "tn":
            a = _transposed(a)
        if problem.layout == "nt":
            b = _transposed(b)
        self._multiply: Callable[[], object] = partial(multiply, a, b, out=self._output)
        self._shape = (problem.rows, problem.sizes[1])
        result = ""
        if type_.is_float and not problem.output:
            result = f", {problem.dtype} result"
        version = TORCH_VERSION.search(torch.__config__.show())
        kernel = _kernel(torch, self._multiply)
        onednn = f"oneDNN {version[1]} {kernel} through " if version and kernel else ""
        self.name = f"{onednn}torch {torch.__version__} (called from Python{result})"

    def repeat(self, times: int) -> None:
        run = self.once()
        for _ in range(times):
            run()

    def once(self) -> Callable[[], object]:
        return self._multiply

    @property
    def result(self) -> Array:  # narrow floats widened to f32
        output = self._output
        if output.is_floating_point():
            output = output.float()
        widened: Array = output.numpy().reshape(self._shape)
        return widened


def _transposed(matrices: Any) -> Any:
    """Returns matrices with the last two dimensions exchanged.

    A single row or column is reshaped, since torch 2.13 misreads transposed ones of i8.
    """
    *lead, rows, columns = matrices.shape
    if 1 in (rows, columns):
        return matrices.view(*lead, columns, rows)
    return matrices.mT


def _kernel(torch: Any, multiply: Callable[[], object]) -> str:
    # oneDNN prints the name of its kernel to the process's stdout only: redirected to a file for one call
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
        call = KERNEL.search(log.read().decode(errors="replace"))
    if call:
        return call[2] or call[1]
    return ""
