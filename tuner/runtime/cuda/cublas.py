"""Calls cuBLAS through ctypes: as installed with torch, cupy, the wheel nvidia-cublas, or CUDA."""

import ctypes
import importlib.util
import itertools
from collections.abc import Iterable
from ctypes import POINTER, byref, c_int, c_longlong, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Final, final

from tuner.core.errors import TunerError
from tuner.core.gpu import AbstractDevice
from tuner.core.problem import Problem

NOT_FOUND: Final = "no cuBLAS found (pip install nvidia-cublas)"
WHEELS = ("cu*/lib", "cublas/lib")  # in the wheels nvidia-cublas and nvidia-cublas-cuXX, nvidia/
SYSTEM = (Path("/usr/local/cuda/lib64"), Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"))
PATTERN = "libcublas.so.*"

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


def find_cublas() -> str:
    """Returns the path of the cuBLAS library that torch and cupy would use.

    Raises TunerError if there is none.
    """
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError as error:
        file = cublas_file()
        if file is None:
            raise TunerError(NOT_FOUND) from error
        return str(file)
    try:
        path = load_nvidia_dynamic_lib("cublas").abs_path
    except DynamicLibNotFoundError as error:
        raise TunerError(NOT_FOUND) from error
    if path is None:
        raise TunerError("cuBLAS was loaded before, from an unknown path")
    return str(path)


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
        for which, number in zip((MAJOR, MINOR, PATCH), version, strict=True):
            self._call("cublasGetProperty", which, byref(number))
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
        kind = TYPES[problem.stored_dtype]
        result = TYPES[problem.result_dtype]
        scalar = SCALARS.get(problem.dtype, ctypes.c_float)
        one = scalar(1)
        zero = scalar(0)
        self._call("cublasSetStream_v2", self._handle, stream)
        self._call("cublasSetWorkspace_v2", self._handle, self._workspace, WORKSPACE_BYTES)
        head = (self._handle, op_b, op_a, n, m, k, byref(one))
        tail = (compute_type(problem), DEFAULT_ALGORITHM)
        if problem.batch == 1:
            operands = (b, kind, ldb, a, kind, lda, byref(zero), c, result, n)
            self._call("cublasGemmEx", *head, *operands, *tail)
        else:
            inputs = (b, kind, ldb, n * k, a, kind, lda, m * k, byref(zero))
            outputs = (c, result, n, m * n, problem.batch)
            self._call("cublasGemmStridedBatchedEx", *head, *inputs, *outputs, *tail)

    def close(self) -> None:
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
    """Returns the cublasComputeType_t for a problem's dtype.

    CUBLAS_COMPUTE_32F unless the dtype has its own.
    """
    return COMPUTE_TYPES.get(problem.dtype, COMPUTE_32F)


def cublas_file(system: Iterable[Path] = SYSTEM) -> Path | None:
    """Returns the newest cuBLAS of an installed wheel, else of the folders ``system``; None without one."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [] if spec is None else list(map(Path, spec.submodule_search_locations or ()))
    for root, pattern in itertools.product(wheels, WHEELS):
        files = [file for folder in root.glob(pattern) for file in folder.glob(PATTERN)]
        if files:
            return max(files, key=_version)
    return max((file for folder in system for file in folder.glob(PATTERN)), key=_version, default=None)


def _version(file: Path) -> tuple[tuple[int, ...], int]:
    """Returns a sort key: the major version after ``.so.``; of links to one file the shortest sorts last."""
    suffixes = file.name.removeprefix("libcublas.so.").split(".")
    numbers = tuple(int(text) for text in suffixes if text.isdigit())
    return numbers[:1], -len(suffixes)
