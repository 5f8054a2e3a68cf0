"""Calls cuBLAS through ctypes: C = A B of row-major matrices, batches included."""

import ctypes
from ctypes import POINTER, byref, c_int, c_longlong, c_size_t, c_void_p
from typing import Any, Final, final

from tuner.core.device import AbstractDevice
from tuner.core.errors import TunerError
from tuner.core.problem import Problem

# cublas_api.h and library_types.h
OP_N = 0
OP_T = 1
TYPES = {"f32": 0, "f64": 1, "f16": 2, "i8": 3, "i32": 10, "bf16": 14}  # cudaDataType
INPUT_TYPES = ("f32", "f64", "f16", "bf16", "i8")
COMPUTE_32F = 68
COMPUTE_32F_FAST_TF32 = 77
COMPUTE_64F = 70
COMPUTE_32I = 72
COMPUTE_TYPES = {"f64": COMPUTE_64F, "tf32": COMPUTE_32F_FAST_TF32, "i8": COMPUTE_32I}
# Rows of i8 begin at multiples of 4 bytes: https://docs.nvidia.com/cuda/cublas/#cublasgemmex
I8_ALIGNED_SIZE = 4
SCALARS: dict[str, Any] = {
    "f64": ctypes.c_double,
    "i8": ctypes.c_int,
}  # C types of alpha and beta; of other dtypes float
DEFAULT_ALGORITHM = -1  # cuBLAS chooses by its heuristics
# libraryPropertyType
MAJOR = 0
MINOR = 1
PATCH = 2
# cuBLAS needs 32 MiB on Hopper and 4 MiB on other GPUs; without a workspace a captured call would allocate
# https://docs.nvidia.com/cuda/cublas/#cublassetworkspace
WORKSPACE_BYTES: Final = 32 << 20
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasGetProperty": (c_int, POINTER(c_int)),
    "cublasCreate_v2": (POINTER(c_void_p),),
    "cublasDestroy_v2": (c_void_p,),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_void_p, c_size_t),
    "cublasGemmEx": (
        *(c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p),  # handle, ops, sizes, alpha
        *(c_void_p, c_int, c_int, c_void_p, c_int, c_int, c_void_p),  # A, B, beta
        *(c_void_p, c_int, c_int, c_int, c_int),  # C, compute type, algorithm
    ),
    "cublasGemmStridedBatchedEx": (
        *(c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p),  # handle, ops, sizes, alpha
        *(c_void_p, c_int, c_int, c_longlong, c_void_p, c_int, c_int, c_longlong, c_void_p),  # A, B, beta
        *(c_void_p, c_int, c_int, c_longlong, c_int, c_int, c_int),  # C, matrices, compute type, algorithm
    ),
}


@final
class Cublas:
    """A cuBLAS handle on one GPU, with its workspace in device memory; ``name`` has the version."""

    def __init__(self, device: AbstractDevice, path: str) -> None:
        """Loads cuBLAS, with a handle and a workspace on the device. Raises TunerError."""
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise TunerError(f"cuBLAS: {error}") from error
        self._device = device
        self._handle = c_void_p()
        self._call("cublasCreate_v2", byref(self._handle))
        self._workspace = device.allocate(WORKSPACE_BYTES, 0)
        device.synchronize_stream(0)
        version = [c_int() for _ in (MAJOR, MINOR, PATCH)]
        for level, number in zip((MAJOR, MINOR, PATCH), version, strict=True):
            self._call("cublasGetProperty", level, byref(number))
        self.name = f"cuBLAS {'.'.join(str(number.value) for number in version)}"

    def multiply(self, problem: Problem, a: int, b: int, c: int, stream: int) -> None:
        """Enqueues C = A B of row-major device addresses, as C' = B' A': cuBLAS is column-major.

        Accumulates in f64 for f64, in i32 for i8, otherwise in f32 (tf32: products in TF32). Raises
        TunerError for dtypes other than f32, tf32, f64, f16, bf16 and i8, and for rows of i8 that are not
        multiples of 4.
        """
        if problem.stored_dtype not in INPUT_TYPES:
            raise TunerError(f"cuBLAS: found {problem.dtype}, allowed {', '.join(INPUT_TYPES)} as baseline")
        m, n, k = problem.sizes
        op_b, ldb = (OP_T, k) if problem.layout == "nt" else (OP_N, n)
        op_a, lda = (OP_T, m) if problem.layout == "tn" else (OP_N, k)
        if problem.dtype == "i8" and (lda % I8_ALIGNED_SIZE or ldb % I8_ALIGNED_SIZE):
            raise TunerError(f"cuBLAS: rows of i8 are multiples of {I8_ALIGNED_SIZE}, found {lda} and {ldb}")
        input_type = TYPES[problem.stored_dtype]
        result_type = TYPES[problem.result_dtype]
        scalar = SCALARS.get(problem.dtype, ctypes.c_float)
        one = scalar(1)
        zero = scalar(0)
        self._call("cublasSetStream_v2", self._handle, stream)
        self._call("cublasSetWorkspace_v2", self._handle, self._workspace, WORKSPACE_BYTES)
        head = (self._handle, op_b, op_a, n, m, k, byref(one))
        tail = (compute_type(problem), DEFAULT_ALGORITHM)
        if problem.batch == 1:
            operands = (b, input_type, ldb, a, input_type, lda, byref(zero), c, result_type, n)
            self._call("cublasGemmEx", *head, *operands, *tail)
        else:
            inputs = (b, input_type, ldb, n * k, a, input_type, lda, m * k, byref(zero))
            outputs = (c, result_type, n, m * n, problem.batch)
            self._call("cublasGemmStridedBatchedEx", *head, *inputs, *outputs, *tail)

    def close(self) -> None:
        """Destroys the handle and frees the workspace; ``multiply`` must not be called afterwards."""
        self._call("cublasDestroy_v2", self._handle)
        self._device.free(self._workspace, 0)

    def _call(self, name: str, *arguments: object) -> None:
        function = getattr(self._library, name)
        function.argtypes = SIGNATURES[name]
        status = function(*arguments)
        if status != 0:
            text_of = self._library.cublasGetStatusString
            text_of.restype = ctypes.c_char_p
            raise TunerError(f"cuBLAS: {name}: {text_of(status).decode()}")


def compute_type(problem: Problem) -> int:
    """Returns the cublasComputeType_t for a problem's dtype: CUBLAS_COMPUTE_32F unless it has another."""
    return COMPUTE_TYPES.get(problem.dtype, COMPUTE_32F)
