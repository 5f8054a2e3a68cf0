"""oneDNN's matmul primitive, by its C interface (version 3): f32, bf16 into f32, i8 into i32."""

import ctypes
import os
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.runtime.cpu.describe_host import processors
from tuner.targets.cpu.baseline_libraries import find_onednn
from tuner.targets.cpu.cblas import address_of
from tuner.targets.cpu.library_call import POINTER, LibraryCall, calling_module
from tuner.targets.cpu.library_matmul import LibraryCode, Operands
from tuner.targets.cpu.shared_libraries import load_library

VERSION = 3  # of the interface; 2 passes structures by value
# dnnl_types.h
CPU, IN_ORDER, IMPLEMENTATION = 1, 1, 8  # dnnl_cpu, dnnl_stream_in_order, dnnl_query_impl_info_str
SOURCE, WEIGHTS, DESTINATION = 1, 33, 17  # DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST
TYPES = ("", "f16", "bf16", "f32", "i32", "i8")  # by the numbers of dnnl_data_type_t
SYCL = 0x200  # dnnl_config.h: DNNL_RUNTIME_SYCL
STATUSES = {1: "out of memory", 2: "invalid arguments", 3: "unimplemented", 6: "runtime error"}

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


def onednn_code(problem: Problem, operands: Operands, threads: int) -> LibraryCode:
    """Returns the call of oneDNN's matmul: "oneDNN 3.13.2 brg_matmul:avx512_core_amx".

    B keeps the layout of the problem: no call finds it reordered. A batch is one call. Raises TunerError
    where oneDNN is missing or refuses the problem.
    """
    path = find_onednn()
    if path is None:
        raise TunerError("baseline onednn: libdnnl is not installed")
    library = load_library(path)
    version = _version(library)
    if version.major != VERSION:
        raise TunerError(f"baseline onednn: {path} has version {version.major}, needed {VERSION}")
    is_sycl = bool(version.cpu_runtime & SYCL)
    if is_sycl:  # its calls run on threads of a pool, which is created with the engine
        os.sched_setaffinity(0, processors(threads))
    matmul = _Matmul(library, problem, operands)
    queue = ", by a SYCL queue" if is_sycl else ""
    number = f"{version.major}.{version.minor}.{version.patch}"
    name = f"oneDNN {number} {matmul.implementation}{queue}"
    return LibraryCode(name, calling_module(*matmul.calls), computes_batch=True, kept=(matmul,))


def _version(library: Any) -> DnnlVersion:
    library.dnnl_version.restype = ctypes.POINTER(DnnlVersion)
    found: DnnlVersion = library.dnnl_version().contents
    return found


class _Matmul:
    """A matmul primitive with its memory objects, and the calls that run it."""

    def __init__(self, library: Any, problem: Problem, operands: Operands) -> None:
        self._library = library
        self._engine = self._made("dnnl_engine_create", CPU, ctypes.c_size_t(0))
        self._stream = self._made("dnnl_stream_create", self._engine, IN_ORDER)
        described = self._described(problem)
        descriptor = self._made(
            "dnnl_matmul_primitive_desc_create", self._engine, *described[:2], None, described[2], None
        )
        self.implementation = self._implementation(descriptor)
        self._primitive = self._made("dnnl_primitive_create", descriptor)
        self._arguments = (DnnlArgument * 3)(
            *(
                DnnlArgument(number, self._memory(each, array.ctypes.data).value)
                for number, each, array in zip(
                    (SOURCE, WEIGHTS, DESTINATION), described, operands, strict=True
                )
            )
        )
        self._run()

    @property
    def calls(self) -> tuple[LibraryCall, ...]:
        """Returns the calls of one matmul: execute the primitive, wait for its end."""
        stream = (self._stream.value or 0, POINTER)
        arguments = (ctypes.addressof(self._arguments), POINTER)
        primitive = (self._primitive.value or 0, POINTER)
        execute = address_of(self._library.dnnl_primitive_execute)
        return (
            LibraryCall(execute, (primitive, stream, (3, "i32"), arguments), "i32"),
            LibraryCall(address_of(self._library.dnnl_stream_wait), (stream,), "i32"),
        )

    def _run(self) -> None:
        """Runs the matmul once, as the compiled calls do. Raises TunerError where that fails."""
        self._require(
            "dnnl_primitive_execute",
            self._library.dnnl_primitive_execute(self._primitive, self._stream, 3, self._arguments),
        )
        self._require("dnnl_stream_wait", self._library.dnnl_stream_wait(self._stream))

    def _described(self, problem: Problem) -> tuple[Handle, Handle, Handle]:
        """Returns the memory descriptors of A, B and C."""
        m, n, k = problem.sizes
        of_a = (1, m) if problem.layout == "tn" else (k, 1)
        of_b = (1, k) if problem.layout == "nt" else (n, 1)
        stored = TYPES.index(problem.dtype)
        return (
            self._descriptor(problem, (m, k), of_a, stored),
            self._descriptor(problem, (k, n), of_b, stored),
            self._descriptor(problem, (m, n), (n, 1), TYPES.index(problem.result_dtype)),
        )

    def _descriptor(
        self, problem: Problem, sizes: tuple[int, int], strides: tuple[int, int], kind: int
    ) -> Handle:
        """Returns the descriptor of one operand; of a batch it has three dimensions."""
        extents = (*problem.lead, *sizes)
        steps = (sizes[0] * sizes[1], *strides) if problem.lead else strides
        numbers = ctypes.c_int64 * len(extents)
        return self._made(
            "dnnl_memory_desc_create_with_strides", len(extents), numbers(*extents), kind, numbers(*steps)
        )

    def _implementation(self, descriptor: Handle) -> str:
        """Returns the kernel that oneDNN has chosen, with its instruction set: "brg_matmul:avx512_core"."""
        found = ctypes.c_char_p()
        query = self._library.dnnl_primitive_desc_query
        self._require(query.__name__, query(descriptor, IMPLEMENTATION, 0, ctypes.byref(found)))
        return (found.value or b"").decode()

    def _memory(self, descriptor: Handle, address: int) -> Handle:
        return self._made("dnnl_memory_create", descriptor, self._engine, Handle(address))

    def _made(self, function: str, *arguments: object) -> Handle:
        """Returns the object that a function of the library creates. Raises TunerError where that fails."""
        handle = Handle()
        self._require(function, getattr(self._library, function)(ctypes.byref(handle), *arguments))
        return handle

    def _require(self, function: str, status: int) -> None:
        if status != 0:
            raise TunerError(f"baseline onednn: {function}: {STATUSES.get(status, f'status {status}')}")
