"""MKL, of the wheel ``mkl`` or of the system."""

import ctypes
import re
from pathlib import Path
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.targets.cpu.baseline_libraries import find_mkl
from tuner.targets.cpu.cblas import address_of, cblas_call
from tuner.targets.cpu.library_call import calling_module
from tuner.targets.cpu.library_matmul import LibraryCode, Operands
from tuner.targets.cpu.shared_libraries import load_library

INTEL, SEQUENTIAL = 0, 1  # mkl_service.h: threads by libiomp5, or none
MAPS = Path("/proc/self/maps")
KERNELS = re.compile(r"/libmkl_(?!vml_|core|rt|intel|sequential|gnu)(\w+)\.so")


class MklVersion(ctypes.Structure):
    """The struct MKLVersion of mkl_types.h."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("update", ctypes.c_int),
        *((name, ctypes.c_char_p) for name in ("status", "build", "processor", "platform")),
    )


def mkl_code(problem: Problem, _operands: Operands, threads: int) -> LibraryCode:
    """Returns the call of MKL: "MKL 2026.2 avx512".

    One thread runs without an OpenMP runtime, several by Intel's. Raises TunerError where MKL is missing or
    has no function for the problem.
    """
    path = find_mkl()
    if path is None:
        raise TunerError("baseline mkl: not installed")
    library = load_library(path)
    library.MKL_Set_Threading_Layer(SEQUENTIAL if threads == 1 else INTEL)
    library.MKL_Set_Dynamic(0)
    library.MKL_Set_Num_Threads(threads)

    def find(operation: str) -> tuple[int, str]:
        function = getattr(library, f"cblas_{operation}", None)
        if function is None:
            raise TunerError(f"baseline mkl: no cblas_{operation} in {path}")
        return address_of(function), "i32"

    return LibraryCode(_name(library, problem), calling_module(cblas_call(problem, find)))


def _name(library: Any, problem: Problem) -> str:
    """Returns the library's name, release and kernels: of AMX only where a bf16 problem uses it."""
    found = MklVersion()
    library.MKL_Get_Version(ctypes.byref(found))
    amx = "_amx" if problem.dtype == "bf16" and b"AMX" in (found.processor or b"") else ""
    return f"MKL {found.major}.{found.update} {_kernels(library)}{amx}"


def _kernels(library: Any) -> str:
    """Returns which of MKL's libraries of kernels is loaded, by the first call of a function: "avx512"."""
    one = ctypes.c_float(1.0)
    place = ctypes.byref(one)
    scale = ctypes.c_float(0.0)
    library.cblas_sgemm(101, 111, 111, 1, 1, 1, scale, place, 1, place, 1, scale, place, 1)
    loaded = KERNELS.search(MAPS.read_text())
    return loaded[1] if loaded else "unknown kernels"
