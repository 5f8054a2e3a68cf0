"""Calls cuBLASLt through ctypes, for matmuls of 8-bit floats, which cuBLAS does not multiply.

``CublasLt`` has the handle; ``matmuls`` asks the library for algorithms of one problem, each of which becomes
an ``LtMatmul`` that can be called.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Final, final

from tuner.core.device import AbstractDevice
from tuner.core.errors import TunerError
from tuner.core.problem import Problem

# cublasLt.h and library_types.h, https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api
OP_N = 0
OP_T = 1
INPUT_TYPES: Final = {"f8E4M3FN": 28, "f8E5M2": 29}  # cudaDataType of A and B
RESULT_TYPES: Final = {"f32": 0, "f16": 2, "bf16": 14}  # cudaDataType of C
COMPUTE_32F = 68
SCALE_32F = 0  # cudaDataType of alpha and beta
# cublasLtMatmulDescAttributes_t
TRANSA = 3
TRANSB = 4
FAST_ACCUM = 25
MAX_WORKSPACE_BYTES = 1  # cublasLtMatmulPreferenceAttributes_t
WORKSPACE_BYTES: Final = 32 << 20  # what cuBLAS takes on Hopper
# Sizes and leading dimensions of 8-bit floats; on Hopper the layout is "TN", A and B with K innermost:
# https://docs.nvidia.com/cuda/cublas/#cublasltmatmul
ALIGNED_SIZE = 16
LAYOUT = "nt"
ALGORITHMS = 16  # asked for; the heuristic returns as many as it has, the fastest by its estimate first


class Algorithm(Structure):
    """``cublasLtMatmulAlgo_t``, an opaque value of the library."""

    _fields_ = (("data", c_uint64 * 8),)


class HeuristicResult(Structure):
    """``cublasLtMatmulHeuristicResult_t``: an algorithm and what it needs."""

    _fields_ = (
        ("algorithm", Algorithm),
        ("workspace_bytes", c_size_t),
        ("status", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (POINTER(c_void_p),),
    "cublasLtDestroy": (c_void_p,),
    "cublasLtMatmulDescCreate": (POINTER(c_void_p), c_int, c_int),  # compute type, type of the scale
    "cublasLtMatmulDescSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatrixLayoutCreate": (POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatmulPreferenceCreate": (POINTER(c_void_p),),
    "cublasLtMatmulPreferenceSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulPreferenceDestroy": (c_void_p,),
    "cublasLtMatmulAlgoGetHeuristic": (
        *(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),  # handle, matmul, layouts
        *(c_int, POINTER(HeuristicResult), POINTER(c_int)),  # asked for, found, how many
    ),
    "cublasLtMatmul": (
        *(c_void_p, c_void_p, c_void_p),  # handle, matmul, alpha
        *(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),  # A, its layout, B, its layout, beta
        *(c_void_p, c_void_p, c_void_p, c_void_p),  # C, its layout, D, its layout
        *(POINTER(Algorithm), c_void_p, c_size_t, c_void_p),  # algorithm, workspace, stream
    ),
}


def require_supported(problem: Problem) -> None:
    """Raises TunerError if cuBLASLt does not multiply a problem: dtype, scales, layout, sizes or batch."""
    if problem.stored_dtype not in INPUT_TYPES:
        raise TunerError(f"cuBLASLt: found {problem.dtype}, allowed e4m3 as baseline")
    if problem.stored_dtype == "f8E5M2":
        raise TunerError("cuBLASLt has no e5m2 x e5m2: one of A and B must be e4m3")
    if problem.scales:
        raise TunerError("cuBLASLt: scales of blocks are not compared")
    if problem.layout != LAYOUT:
        raise TunerError(f"cuBLASLt multiplies 8-bit floats in layout {LAYOUT} alone, found {problem.layout}")
    if any(size % ALIGNED_SIZE for size in problem.sizes):
        sizes = "x".join(map(str, problem.sizes))
        raise TunerError(f"cuBLASLt: sizes of 8-bit floats are multiples of {ALIGNED_SIZE}, found {sizes}")
    if problem.batch != 1:
        raise TunerError("cuBLASLt: batches of 8-bit floats are not compared")


@final
class CublasLt:
    """A cuBLASLt handle on one GPU, with its workspace in device memory; ``name`` has the version."""

    def __init__(self, device: AbstractDevice, path: str) -> None:
        """Loads cuBLASLt, with a handle and a workspace on the device. Raises TunerError."""
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise TunerError(f"cuBLASLt: {error}") from error
        self._device = device
        self.handle = self._created("cublasLtCreate")
        self.workspace = device.allocate(WORKSPACE_BYTES, 0)
        device.synchronize_stream(0)
        get_version = self._library.cublasLtGetVersion
        get_version.restype = c_size_t
        self.name = f"cuBLASLt {_version_text(get_version())}"

    def matmuls(self, problem: Problem, *, fast_accumulation: bool) -> "tuple[LtMatmul, ...]":
        """Returns a problem's matmul by each of up to 16 algorithms, the one expected to be fastest first.

        ``fast_accumulation``: sums stay in the tensor core, with its precision; else they are added to f32
        sums every few steps of K. Raises TunerError if cuBLASLt does not multiply the problem or has no
        algorithm.
        """
        require_supported(problem)
        operation = self._operation(problem, fast_accumulation=fast_accumulation)
        results = (HeuristicResult * ALGORITHMS)()
        count = c_int()
        with self._preference() as preference:
            layouts = (operation.b, operation.a, operation.c, operation.c)
            arguments = (self.handle, operation.descriptor, *layouts, preference)
            self.call("cublasLtMatmulAlgoGetHeuristic", *arguments, ALGORITHMS, results, byref(count))
        usable = [result for result in results[: count.value] if result.status == 0]
        if not usable:
            raise TunerError(f"{self.name}: the heuristic has no algorithm for {problem.key}")
        return tuple(
            LtMatmul(self, operation, number, result.algorithm, fast_accumulation)
            for number, result in enumerate(usable, 1)
        )

    def close(self) -> None:
        """Destroys the handle and frees the workspace; matmuls must not be called after it."""
        self.call("cublasLtDestroy", self.handle)
        self._device.free(self.workspace, 0)

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function of the library. Raises TunerError, with the library's message, if it fails."""
        function: Callable[..., int] = getattr(self._library, name)
        function.argtypes = SIGNATURES[name]  # type: ignore[attr-defined]
        status = function(*arguments)
        if status != 0:
            text_of = self._library.cublasLtGetStatusString
            text_of.restype = ctypes.c_char_p
            raise TunerError(f"cuBLASLt: {name}: {text_of(status).decode()}")

    def _operation(self, problem: Problem, *, fast_accumulation: bool) -> "LtOperation":
        m, n, k = problem.sizes
        inputs = INPUT_TYPES[problem.stored_dtype]
        # column-major, so C' = B' A': the first operand is B (n x k, transposed), the second A (k x m)
        descriptor = self._created("cublasLtMatmulDescCreate", COMPUTE_32F, SCALE_32F)
        for attribute, value in ((TRANSA, OP_T), (TRANSB, OP_N)):
            number = c_int(value)
            size = ctypes.sizeof(number)
            self.call("cublasLtMatmulDescSetAttribute", descriptor, attribute, byref(number), size)
        flag = ctypes.c_int8(fast_accumulation)
        self.call("cublasLtMatmulDescSetAttribute", descriptor, FAST_ACCUM, byref(flag), 1)
        return LtOperation(
            descriptor,
            a=self._created("cublasLtMatrixLayoutCreate", inputs, k, m, k),
            b=self._created("cublasLtMatrixLayoutCreate", inputs, k, n, k),
            c=self._created("cublasLtMatrixLayoutCreate", RESULT_TYPES[problem.result_dtype], n, m, n),
        )

    @contextmanager
    def _preference(self) -> Iterator[c_void_p]:
        preference = self._created("cublasLtMatmulPreferenceCreate")
        limit = c_size_t(WORKSPACE_BYTES)
        size = ctypes.sizeof(limit)
        try:
            self.call(
                "cublasLtMatmulPreferenceSetAttribute", preference, MAX_WORKSPACE_BYTES, byref(limit), size
            )
            yield preference
        finally:
            self.call("cublasLtMatmulPreferenceDestroy", preference)

    def _created(self, name: str, *arguments: int) -> c_void_p:
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle


@dataclass(frozen=True, eq=False)
class LtOperation:
    """The library's descriptor of a matmul, and its layouts of the matrices."""

    descriptor: c_void_p
    a: c_void_p
    b: c_void_p
    c: c_void_p


@final
@dataclass(frozen=True, eq=False)
class LtMatmul:
    """C = A B of one problem by one algorithm of cuBLASLt."""

    library: CublasLt
    operation: LtOperation
    number: int  # of the algorithm, 1: the first of the heuristic
    algorithm: Algorithm
    fast_accumulation: bool

    @property
    def name(self) -> str:
        """Returns library, version, number of the algorithm and accumulation ("fast" or "f32") as a text."""
        sums = "fast" if self.fast_accumulation else "f32"
        return f"{self.library.name} (algorithm {self.number}, {sums} accumulation)"

    def multiply(self, a: int, b: int, c: int, stream: int) -> None:
        """Enqueues C = A B; ``a``, ``b``, ``c``: device addresses of row-major matrices.

        Raises TunerError if the library rejects the call.
        """
        one = c_float(1.0)
        zero = c_float(0.0)
        operation = self.operation
        self.library.call(
            "cublasLtMatmul",
            *(self.library.handle, operation.descriptor, byref(one)),
            *(b, operation.b, a, operation.a, byref(zero)),
            *(c, operation.c, c, operation.c),
            *(byref(self.algorithm), self.library.workspace, WORKSPACE_BYTES, stream),
        )


def _version_text(version: int) -> str:
    """Returns "13.1.0" for 130100, as ``CUBLAS_VERSION`` counts from 11 on: 10000, 100 and 1."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"
