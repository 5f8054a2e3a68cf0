"""oneDNN's matmul as a baseline: by its C interface, and through torch for types that need it."""

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
from tuner.runtime.cpu.host import processors
from tuner.runtime.cpu.memory import placed_copy, placed_empty
from tuner.targets.cpu import blas
from tuner.targets.cpu.baseline_libraries import LIBRARIES, ONEDNN, load_library

# oneDNN's matmul primitive, by its C interface (version 3): f32, bf16 and f16 into f32, i8 into i32.

VERSION = 3  # of the interface; 2 passes structures by value
# dnnl_types.h
# dnnl_cpu, dnnl_stream_in_order, dnnl_query_impl_info_str
CPU = 1
IN_ORDER = 1
IMPLEMENTATION = 8
# DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST
SOURCE = 1
WEIGHTS = 33
DESTINATION = 17
TYPES = ("", "f16", "bf16", "f32", "i32", "i8")  # by the numbers of dnnl_data_type_t
SYCL = 0x200  # dnnl_config.h: DNNL_RUNTIME_SYCL
STATUSES = {1: "out of memory", 2: "invalid arguments", 3: "unimplemented", 5: "runtime error"}

Handle = ctypes.c_void_p  # of an object of the library
TORCH_VERSION = re.compile(r"MKL-DNN v([\d.]+)")  # in torch.__config__
# onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core_amx,...
KERNEL = re.compile(r",exec,cpu,(matmul|inner_product|gemm_api),([\w:.]*),")  # primitive, implementation


class DnnlVersion(ctypes.Structure):
    """The struct dnnl_version_t."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("major", "minor", "patch")),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


class DnnlArgument(ctypes.Structure):
    """The struct dnnl_exec_arg_t: an argument of a primitive, and its memory."""

    _fields_ = (("number", ctypes.c_int), ("memory", ctypes.c_void_p))


def onednn_code(problem: Problem, operands: blas.Operands, threads: int) -> blas.LibraryCode:
    """Returns oneDNN's name, "oneDNN 3.13.2 brg_matmul:avx512_core_amx", and code that calls it.

    Raises TunerError for another major version, or if oneDNN cannot create the matmul.
    """
    path = LIBRARIES[ONEDNN].find()
    assert path is not None  # ``BaselineService`` requires it
    library = load_library(path)
    library.dnnl_version.restype = ctypes.POINTER(DnnlVersion)
    version: DnnlVersion = library.dnnl_version().contents
    if version.major != VERSION:
        raise TunerError(f"{path} has version {version.major}, needed {VERSION}")
    is_sycl = bool(version.cpu_runtime & SYCL)
    if is_sycl:  # its calls run on threads of a pool, which is created with the engine
        os.sched_setaffinity(0, processors(threads))
    matmul = _Matmul(library, problem, operands)
    queue = ", by a SYCL queue" if is_sycl else ""
    number = f"{version.major}.{version.minor}.{version.patch}"
    name = f"oneDNN {number} {matmul.implementation}{queue}"
    return blas.LibraryCode(name, blas.calling_module(*matmul.calls), computes_batch=True, kept=(matmul,))


onednn_matmul = partial(blas.CompiledLibraryMatmul, describe=onednn_code)


class _Matmul:
    """A matmul primitive with its memory objects, and the calls that run it."""

    def __init__(self, library: Any, problem: Problem, operands: blas.Operands) -> None:
        self._library = library
        self._engine = self._created("dnnl_engine_create", CPU, ctypes.c_size_t(0))
        self._stream = self._created("dnnl_stream_create", self._engine, IN_ORDER)
        (m, n, k), (of_a, of_b) = problem.sizes, blas.strides(problem)
        stored, result = map(TYPES.index, (problem.dtype, problem.result_dtype))
        a = self._descriptor(problem, (m, k), of_a, stored)
        b = self._descriptor(problem, (k, n), of_b, stored)
        c = self._descriptor(problem, (m, n), (n, 1), result)
        descriptor = self._created("dnnl_matmul_primitive_desc_create", self._engine, a, b, None, c, None)
        name = ctypes.c_char_p()
        query = library.dnnl_primitive_desc_query
        self._require(query.__name__, query(descriptor, IMPLEMENTATION, 0, ctypes.byref(name)))
        self.implementation = (name.value or b"").decode()  # with its instructions: "brg_matmul:avx512_core"
        self._primitive = self._created("dnnl_primitive_create", descriptor)
        memories = [
            self._created("dnnl_memory_create", layout, self._engine, Handle(array.ctypes.data)).value
            for layout, array in zip((a, b, c), operands, strict=True)
        ]
        self._arguments = (DnnlArgument * 3)(*map(DnnlArgument, (SOURCE, WEIGHTS, DESTINATION), memories))
        # once here, where errors are checked: the compiled calls ignore errors
        run = library.dnnl_primitive_execute
        wait = library.dnnl_stream_wait
        self._require(run.__name__, run(self._primitive, self._stream, len(memories), self._arguments))
        self._require(wait.__name__, wait(self._stream))

    @property
    def calls(self) -> tuple[blas.LibraryCall, ...]:
        """Returns the calls of one matmul: execute the primitive, wait for its end."""
        stream = (self._stream.value or 0, blas.POINTER)
        arguments = (ctypes.addressof(self._arguments), blas.POINTER)
        primitive = (self._primitive.value or 0, blas.POINTER)
        execute = blas.address_of(self._library.dnnl_primitive_execute)
        return (
            blas.LibraryCall(execute, (primitive, stream, (3, "i32"), arguments), "i32"),
            blas.LibraryCall(blas.address_of(self._library.dnnl_stream_wait), (stream,), "i32"),
        )

    def _descriptor(
        self, problem: Problem, sizes: tuple[int, int], steps: tuple[int, ...], type_: int
    ) -> Handle:
        extents = (*problem.lead, *sizes)
        if problem.lead:
            steps = (sizes[0] * sizes[1], *steps)
        numbers = ctypes.c_int64 * len(extents)
        return self._created(
            "dnnl_memory_desc_create_with_strides", len(extents), numbers(*extents), type_, numbers(*steps)
        )

    def _created(self, function: str, *arguments: object) -> Handle:
        handle = Handle()
        self._require(function, getattr(self._library, function)(ctypes.byref(handle), *arguments))
        return handle

    def _require(self, function: str, status: int) -> None:
        if status != 0:
            raise TunerError(f"{function}: {STATUSES.get(status, f'status {status}')}")


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
        words = np.dtype(np.int16 if type_.is_float else np.int8)
        placed = [placed_copy(x.view(words), offset) for x in (inputs.a, inputs.b)]
        placed.append(placed_empty(problem.c_shape, words if type_.is_float else np.dtype(np.int32), offset))
        self.operands = tuple(placed)
        a, b, self._output = map(torch.from_numpy, placed)
        if type_.is_float:
            element = getattr(torch, type_.numpy_name)
            a, b, self._output = (x.view(element) for x in (a, b, self._output))
        a = _transposed(a) if problem.layout == "tn" else a
        b = _transposed(b) if problem.layout == "nt" else b
        multiply = torch.matmul if type_.is_float else torch._int_mm  # noqa: SLF001 - the only product of i8
        self._multiply: Callable[[], object] = partial(multiply, a, b, out=self._output)
        self._shape = (problem.rows, problem.sizes[1])
        result = f", {problem.dtype} result" if type_.is_float and not problem.output else ""
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
        output = self._output.float() if self._output.is_floating_point() else self._output
        widened: Array = output.numpy().reshape(self._shape)
        return widened


def _transposed(matrices: Any) -> Any:
    """Exchanges the last dimensions; reshapes a single row or column: torch 2.13 misreads such i8."""
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
