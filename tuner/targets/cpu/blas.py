"""Matmuls of BLAS libraries (BLIS, MKL, OpenBLAS), called from JIT-compiled code as kernels are.

A library gives a ``LibraryCall``; ``calling_module`` makes a function of it, which a
``CompiledLibraryMatmul`` compiles and calls, with the threads of the library pinned.
"""

import abc
import contextlib
import ctypes
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import threadpoolctl

from tuner.core.errors import TunerError
from tuner.core.interfaces import Partition
from tuner.core.problem import Problem
from tuner.mlir.cpu.lowering import with_batch_loops
from tuner.payload.cpu import matrix_bytes
from tuner.payload.reference import Array, Inputs, output_dtype
from tuner.runtime.cpu.host import processors
from tuner.runtime.cpu.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.memory import placed_copy, placed_empty
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.baseline_libraries import find_blis, find_mkl, load_library

# ------------------------------------------------------------------------------
# LLVM-dialect text of a function that calls functions of a library at known addresses.


Argument = tuple[int | float | str, str]  # (constant, or the name of an SSA value; MLIR type)
POINTER = "!llvm.ptr"
A, B, C = ("%a", POINTER), ("%b", POINTER), ("%c", POINTER)  # operands of the function


@dataclass(frozen=True)
class LibraryCall:
    """A call of a C function at an address, with constants and operands as arguments.

    A whole number of type ``!llvm.ptr`` is an address.
    """

    address: int
    arguments: tuple[Argument, ...]
    result: str = ""  # MLIR type; "": the function returns nothing


def calling_module(*calls: LibraryCall) -> str:
    """Returns a module with a function ``baseline`` of pointers to A, B and C that makes calls in order.

    The function ignores what the calls return.
    """
    body = "\n".join(line for number, call in enumerate(calls) for line in _lines(call, f"{number}"))
    return f"""module {{
  llvm.func @baseline(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
{body}
    llvm.return
  }}
}}
"""


def _lines(call: LibraryCall, prefix: str) -> list[str]:
    """Returns the operations of one call; names of its values begin with ``prefix``, such as %0_3."""
    lines, names = [], []
    for index, (value, kind) in enumerate(((call.address, POINTER), *call.arguments)):
        name = value if isinstance(value, str) else f"%v{prefix}_{index}"
        names.append(name)
        if not isinstance(value, str):
            lines += _constant(name, value, kind)
    types = ", ".join(kind for _, kind in call.arguments)
    returned = f"%r{prefix} = " if call.result else ""
    function, *arguments = names
    signature = f"{POINTER}, ({types}) -> {call.result or '()'}"
    return [*lines, f"    {returned}llvm.call {function}({', '.join(arguments)}) : {signature}"]


def _constant(name: str, value: int | float, kind: str) -> list[str]:
    if kind != POINTER:
        return [f"    {name} = llvm.mlir.constant({value} : {kind}) : {kind}"]
    return [
        f"    {name}_address = llvm.mlir.constant({value} : i64) : i64",
        f"    {name} = llvm.inttoptr {name}_address : i64 to {POINTER}",
    ]


# ------------------------------------------------------------------------------
# Calls of the C interface of BLAS: gemv for a single row, gemm otherwise.


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


TASKS = Path("/proc/self/task")
WORK_S = 0.02  # of repeated calls; a working thread shows by then in the processor times


def pin_working_threads(repeat: Callable[[int], None], processors: tuple[int, ...]) -> None:
    """Pins this process's busiest threads, and the caller's thread, one to each of ``processors``.

    Calls ``repeat(1)`` for 0.02 s (WORK_S) to find the threads that run longest; the caller's thread gets the
    first processor. Threads beyond the number of processors are not pinned.
    """
    before = _processor_s()
    give_up = time.perf_counter() + WORK_S
    while time.perf_counter() < give_up:
        repeat(1)
    caller = threading.get_native_id()
    worked = {task: seconds - before.get(task, 0.0) for task, seconds in _processor_s().items()}
    others = sorted(worked.keys() - {caller}, key=lambda task: -worked[task])
    for task, processor in zip((caller, *others), processors, strict=False):
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            os.sched_setaffinity(task, {processor})


def _processor_s() -> dict[int, float]:
    """Returns the seconds that each thread of this process ran, by thread id.

    Source: sched-stats.txt of the Linux kernel's documentation.
    """
    found = {}
    for task in TASKS.iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0]) * 1e-9
    return found


# ------------------------------------------------------------------------------
# A library's matmul of given inputs: the port, and libraries that JIT-compiled code calls like kernels.


Operands = tuple[Array, Array, Array]  # A, B, C


@dataclass(frozen=True, eq=False)
class LibraryCode:
    """How a library computes one problem: its name with version and kernel, and code that calls it.

    ``text`` is a module of the LLVM dialect with a function ``baseline`` of three pointers: to A, B and C.
    """

    name: str
    text: str
    computes_batch: bool = False  # True: a call computes every matrix of a batch; False: one of them
    kept: tuple[object, ...] = ()  # objects that own memory whose addresses are in ``text``


# (problem, operands, threads) -> code; raises TunerError where the library is missing or refuses the problem
Describe = Callable[[Problem, Operands, int], LibraryCode]


class AbstractLibraryMatmul(abc.ABC):
    """A baseline library's matmul of given inputs, at fixed addresses. Final subclasses only."""

    name: str  # with version and kernel: "MKL 2026.2 avx512"
    operands: tuple[Array, ...]  # A, B and C in memory, with the problem's alignment and no more

    @abc.abstractmethod
    def repeat(self, times: int) -> None:
        """Computes the matmul of the same inputs ``times`` times."""

    @abc.abstractmethod
    def once(self) -> Callable[[], object]:
        """Returns a function that computes the matmul once, and does little else."""

    @property
    @abc.abstractmethod
    def result(self) -> Array:
        """Returns the last C, of shape (rows, n), where rows are those of all matrices of a batch."""


@final
class CompiledLibraryMatmul(AbstractLibraryMatmul):
    """The matmul of given inputs by a C library, called from JIT-compiled code without Python in between."""

    def __init__(self, problem: Problem, inputs: Inputs, threads: int, describe: Describe) -> None:
        """Places the operands, compiles the call and pins the library's threads.

        Raises TunerError where ``describe`` does: the library is missing or refuses the problem.
        """
        offset = problem.offset_bytes
        result = placed_empty((problem.rows, problem.sizes[1]), output_dtype(problem), offset)
        placed = (placed_copy(inputs.a, offset), placed_copy(inputs.b, offset), result)
        described = describe(problem, placed, threads)
        self.operands = placed
        self.name = described.name
        if problem.batch > 1 and not described.computes_batch:
            self.name += ", a call for each matrix"
        m, n, _ = problem.sizes
        matrices = 1 if described.computes_batch else problem.batch
        whole = Partition("baseline", 0, 0, m, n, 0, matrices)
        bare = matrix_bytes(replace(problem, epilogue="none"))
        self._code = JittedModule(with_batch_loops(described.text, (whole,), bare), (whole.called,))
        self._arguments = PackedArguments(*(each.ctypes.data for each in placed))
        self._calls = ((self._code.addresses[whole.called], self._arguments.address),)
        self._kept = described.kept
        self._team = ThreadTeam(1)
        pin_working_threads(self.repeat, processors(threads))

    @property
    def result(self) -> Array:
        return self.operands[2]

    def repeat(self, times: int) -> None:
        self._team.repeat(self._calls, times)

    def once(self) -> Callable[[], object]:
        return self._team.once(self._calls)


# ------------------------------------------------------------------------------
# BLIS, of the system (libblis) or of the wheel ``blis``, by its typed interface, which both have.


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
    arguments = (_blis_gemv if is_vector(problem) else _blis_gemm)(problem, integer, one, zero)
    call = LibraryCall(address_of(getattr(library, f"bli_{operation}")), arguments)
    return LibraryCode(_blis_name(library), calling_module(call), kept=(scales,))


def _blis_name(library: Any) -> str:
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


def _blis_gemm(problem: Problem, i: str, one: int, zero: int) -> tuple[Argument, ...]:
    m, n, k = problem.sizes
    of_a, of_b = _strides(problem, i)
    sizes = ((m, i), (n, i), (k, i))
    head = (PLAIN, PLAIN, *sizes, (one, POINTER))
    return (*head, A, *of_a, B, *of_b, (zero, POINTER), C, (n, i), (1, i))


def _blis_gemv(problem: Problem, i: str, one: int, zero: int) -> tuple[Argument, ...]:
    """Returns the arguments of gemv: the row vector A times B is B^T (n x k) times a column vector."""
    _, n, k = problem.sizes
    _, (rows, columns) = _strides(problem, i)
    head = (PLAIN, PLAIN, (n, i), (k, i), (one, POINTER))
    return (*head, B, columns, rows, A, (1, i), (zero, POINTER), C, (1, i))


# ------------------------------------------------------------------------------
# MKL, of the wheel ``mkl`` or of the system.


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

    return LibraryCode(_mkl_name(library, problem), calling_module(cblas_call(problem, find)))


def _mkl_name(library: Any, problem: Problem) -> str:
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
