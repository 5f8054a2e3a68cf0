"""Calls of the C interface of BLAS: gemv for a single row, gemm otherwise."""

import ctypes
from collections.abc import Callable

from tuner.core.problem import Problem
from tuner.targets.cpu.library_call import A, Argument, B, C, LibraryCall

ROW_MAJOR, NO_TRANS, TRANS = 101, 111, 112  # cblas.h
GEMM = {"f32": "sgemm", "f64": "dgemm", "bf16": "gemm_bf16bf16f32"}  # without the prefix cblas_
GEMV = {"f32": "sgemv", "f64": "dgemv"}
# "sgemm" -> (address of the function, MLIR type of its integers); raises TunerError where there is none
Find = Callable[[str], tuple[int, str]]


def cblas_call(problem: Problem, find: Find) -> LibraryCall:
    """Returns the call that computes one matmul of f32, f64 or bf16 (into f32) by a cblas function.

    A single row is computed by gemv, but for layout tn and for bf16. Raises
    TunerError where ``find`` does: the library has no such function.
    """
    scalar = "f64" if problem.dtype == "f64" else "f32"
    if is_vector(problem):
        address, integer = find(GEMV[problem.dtype])
        return LibraryCall(address, _gemv(problem, integer, scalar))
    address, integer = find(GEMM[problem.dtype])
    return LibraryCall(address, _gemm(problem, integer, scalar))


def is_vector(problem: Problem) -> bool:
    """Returns True if a BLAS computes the problem by gemv: one row of f32 or f64, contiguous in memory."""
    return problem.sizes[0] == 1 and problem.layout != "tn" and problem.dtype in GEMV


def address_of(function: object) -> int:
    """Returns the address of a function of a library that ctypes has loaded."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _gemm(problem: Problem, i: str, scalar: str) -> tuple[Argument, ...]:
    m, n, k = problem.sizes
    trans_a, lda = (TRANS, m) if problem.layout == "tn" else (NO_TRANS, k)
    trans_b, ldb = (TRANS, k) if problem.layout == "nt" else (NO_TRANS, n)
    head = ((ROW_MAJOR, "i32"), (trans_a, "i32"), (trans_b, "i32"), (m, i), (n, i), (k, i))
    return (*head, (1.0, scalar), A, (lda, i), B, (ldb, i), (0.0, scalar), C, (n, i))


def _gemv(problem: Problem, i: str, scalar: str) -> tuple[Argument, ...]:
    """Returns the arguments of cblas gemv: a row vector times B is B^T times a column vector."""
    _, n, k = problem.sizes
    rows, columns, trans = (n, k, NO_TRANS) if problem.layout == "nt" else (k, n, TRANS)
    head = ((ROW_MAJOR, "i32"), (trans, "i32"), (rows, i), (columns, i), (1.0, scalar))
    return (*head, B, (columns, i), A, (1, i), (0.0, scalar), C, (1, i))
