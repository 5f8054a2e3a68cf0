"""OpenBLAS as numpy ships it."""

import ctypes
from typing import Any

import threadpoolctl

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.targets.cpu.cblas import address_of, cblas_call
from tuner.targets.cpu.library_call import calling_module
from tuner.targets.cpu.library_matmul import LibraryCode, Operands

SYMBOLS = (("scipy_cblas_{}64_", "i64"), ("cblas_{}64_", "i64"), ("cblas_{}", "i32"))  # name, integer type


def openblas_code(problem: Problem, _operands: Operands, _threads: int) -> LibraryCode:
    """Returns the call of the OpenBLAS that numpy has loaded: "openblas 0.3.30 SkylakeX".

    Its number of threads is that of the process's environment. Raises TunerError where library or function is
    missing.
    """
    found = next((one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"), None)
    if found is None:
        raise TunerError("baseline: numpy's BLAS was not found in this process")
    library: Any = ctypes.CDLL(found["filepath"])

    def find(operation: str) -> tuple[int, str]:
        for pattern, integer in SYMBOLS:
            function = getattr(library, pattern.format(operation), None)
            if function is not None:
                return address_of(function), integer
        raise TunerError(f"baseline: no cblas {operation} in {found['filepath']}")

    # the kernel it chose: OPENBLAS_CORETYPE would show here
    name = f"{found['internal_api']} {found['version']} {found.get('architecture', '')}".strip()
    return LibraryCode(name, calling_module(cblas_call(problem, find)))
