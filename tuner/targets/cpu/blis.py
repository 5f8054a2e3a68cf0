"""BLIS, of the system (libblis) or of the wheel ``blis``, by its typed interface, which both have."""

import ctypes
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.targets.cpu.baseline_libraries import find_blis
from tuner.targets.cpu.cblas import address_of, is_vector
from tuner.targets.cpu.library_call import POINTER, A, Argument, B, C, LibraryCall, calling_module
from tuner.targets.cpu.library_matmul import LibraryCode, Operands
from tuner.targets.cpu.shared_libraries import load_library

LETTER = {"f32": "s", "f64": "d"}
SCALAR = {"f32": ctypes.c_float, "f64": ctypes.c_double}
PLAIN = (0, "i32")  # BLIS_NO_TRANSPOSE, BLIS_NO_CONJUGATE: strides say what is transposed


def blis_code(problem: Problem, _operands: Operands, threads: int) -> LibraryCode:
    """Returns the call of BLIS: "BLIS 0.9.0 skx".

    Raises TunerError where BLIS is missing, and for several threads where it was built without threads.
    """
    path = find_blis()
    if path is None:
        raise TunerError("baseline blis: not installed")
    library = load_library(path)
    library.bli_init()
    if threads > 1 and not (library.bli_info_get_enable_openmp() or library.bli_info_get_enable_pthreads()):
        raise TunerError(f"baseline blis: {path} was built for one thread, asked for {threads}")
    integer = f"i{library.bli_info_get_int_type_size()}"
    library.bli_thread_set_num_threads(
        ctypes.c_int64(threads) if integer == "i64" else ctypes.c_int32(threads)
    )
    scales = (SCALAR[problem.dtype](1.0), SCALAR[problem.dtype](0.0))
    one, zero = (ctypes.addressof(scale) for scale in scales)
    operation = LETTER[problem.dtype] + ("gemv" if is_vector(problem) else "gemm")
    arguments = (_gemv if is_vector(problem) else _gemm)(problem, integer, one, zero)
    call = LibraryCall(address_of(getattr(library, f"bli_{operation}")), arguments)
    return LibraryCode(_name(library), calling_module(call), kept=(scales,))


def _name(library: Any) -> str:
    library.bli_info_get_version_str.restype = ctypes.c_char_p
    library.bli_arch_string.restype = ctypes.c_char_p
    version = library.bli_info_get_version_str().decode()
    return f"BLIS {version} {library.bli_arch_string(library.bli_arch_query_id()).decode()}"


def _strides(problem: Problem, i: str) -> tuple[tuple[Argument, Argument], tuple[Argument, Argument]]:
    """Returns the distances in elements between rows, and between columns, of A (m x k) and of B (k x n)."""
    m, n, k = problem.sizes
    of_a = (1, m) if problem.layout == "tn" else (k, 1)
    of_b = (1, k) if problem.layout == "nt" else (n, 1)
    return ((of_a[0], i), (of_a[1], i)), ((of_b[0], i), (of_b[1], i))


def _gemm(problem: Problem, i: str, one: int, zero: int) -> tuple[Argument, ...]:
    m, n, k = problem.sizes
    of_a, of_b = _strides(problem, i)
    sizes = ((m, i), (n, i), (k, i))
    head = (PLAIN, PLAIN, *sizes, (one, POINTER))
    return (*head, A, *of_a, B, *of_b, (zero, POINTER), C, (n, i), (1, i))


def _gemv(problem: Problem, i: str, one: int, zero: int) -> tuple[Argument, ...]:
    """Returns the arguments of gemv: the row vector A times B is B^T (n x k) times a column vector."""
    _, n, k = problem.sizes
    _, (rows, columns) = _strides(problem, i)
    head = (PLAIN, PLAIN, (n, i), (k, i), (one, POINTER))
    return (*head, B, columns, rows, A, (1, i), (zero, POINTER), C, (1, i))
