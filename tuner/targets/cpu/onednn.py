"""oneDNN's matmul as a baseline, by its C interface (version 3): f32, bf16, f16 and i8 into the type of C."""

import ctypes
import os
from functools import partial
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.runtime.cpu.host import processors
from tuner.targets.cpu import blas
from tuner.targets.cpu.baseline_libraries import LIBRARIES, ONEDNN, load_library

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

    Raises TunerError for another major version, or if oneDNN cannot create or run the matmul.
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
    """A matmul primitive of oneDNN with its memory objects, and the library calls that run it."""

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
