"""A GPU whose kernels are numpy's: the stand-in for libcuda runs them where there is no simulator either.

A kernel's name says what it does: ``right_f32_16_8_8`` multiplies; others are wrong, hang, crash, or lose the
context.
"""

import ctypes
import os
import time
from typing import Any

import numpy as np

from tests.elsewhere.bundle.values import pending
from tuner.core.compiled_code import KernelCode, Launch, buffers_of
from tuner.core.interfaces import Effort
from tuner.core.numpy_types import widened
from tuner.core.problem import Problem
from tuner.core.remote_results import PendingTrial
from tuner.payload.reference import NUMPY_DTYPES

DESCRIBE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.c_void_p
)
FEW = 2  # samples: nothing here is a time of a GPU
CALLBACKS: list[Any] = []


def candidate(number: int, problem: Problem, deed: str = "right", binary: bytes = b"") -> PendingTrial:
    """Returns a pending trial whose kernel does that deed."""
    dtype = problem.dtype
    name = "_".join((deed, dtype, *map(str, problem.sizes)))
    launch = Launch(name, (1, 1, 1), (32, 1, 1), 0, ("a", "b", "c"))
    return pending(number, problem, KernelCode("sm_90", "numpy", binary, (launch,), buffers_of(problem)))


def install() -> None:
    """Makes the stand-in's kernels ours, in this process."""
    from tuner.elsewhere.bundle import session
    from tuner.gpu.target import event_timing
    from tuner.tuning import budget

    event_timing.MIN_SAMPLES = event_timing.COLD_SAMPLES = FEW
    setattr(budget, "EARLY_STOPPED", 1e9)  # noqa: B010 - what busy processors take is not a reason to stop early
    setattr(session, "FINAL_EFFORT", Effort(0.0, FEW, FEW))  # noqa: B010
    library = ctypes.CDLL("libcuda.so.1")
    CALLBACKS[:] = [DESCRIBE(describe), LAUNCH(launch)]
    library.stub_on_launch(*CALLBACKS)


def describe(image: bytes, name: bytes, sizes: Any) -> int:
    """Returns three pointer arguments for every kernel, and none for a cubin that is not supported."""
    if image == b"refused":
        return -1
    for number in range(3):
        sizes[number] = 8
    return 3


def launch(image: bytes, name: bytes, sizes: Any, parameters: int) -> int:
    """Does the deed of a kernel."""
    deed, dtype, *extents = name.decode().split("_")
    if deed == "hang":
        time.sleep(1000)
    if deed == "crash":
        os.abort()
    if deed == "lost":
        return 1
    m, n, k = map(int, extents)
    pointers = (ctypes.c_uint64.from_address(parameters + 8 * number).value for number in range(3))
    a, b, c = (ctypes.c_uint64.from_address(pointer).value for pointer in pointers)
    stored = NUMPY_DTYPES[dtype]
    product = _wide(a, (m, k), stored) @ _wide(b, (k, n), stored)
    if deed == "wrong":
        product[m // 2, n // 3] += 3.0
    _view(c, (m, n), np.dtype(np.float64 if dtype == "f64" else np.float32))[...] = product
    return 0


def _view(address: int, shape: tuple[int, int], dtype: "np.dtype[Any]") -> Any:
    size = shape[0] * shape[1] * dtype.itemsize
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)).view(dtype).reshape(shape)


def _wide(address: int, shape: tuple[int, int], dtype: "np.dtype[Any]") -> Any:
    return widened(_view(address, shape, dtype)).astype(np.float64)
