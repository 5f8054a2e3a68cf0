"""Matmuls of BLAS libraries (BLIS, MKL, OpenBLAS), called from JIT-compiled code as kernels are."""

import abc
import contextlib
import ctypes
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, final

import threadpoolctl

from tuner.core.errors import TunerError
from tuner.core.interfaces import Partition
from tuner.core.problem import Problem
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.payload.cpu import matrix_bytes
from tuner.payload.reference import Array, Inputs, output_dtype
from tuner.runtime.cpu.host import processors
from tuner.runtime.cpu.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.memory import placed_copy, placed_empty
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.baseline_libraries import BLIS, LIBRARIES, MKL, load_library

Argument = tuple[int | float | str, str]  # (constant, or the name of an SSA value; MLIR type)
POINTER = "!llvm.ptr"
# operands of the function
A = ("%a", POINTER)
B = ("%b", POINTER)
C = ("%c", POINTER)
# cblas.h
ROW_MAJOR = 101
NO_TRANS = 111
TRANS = 112
GEMM = {"f32": "sgemm", "f64": "dgemm", "bf16": "gemm_bf16bf16f32"}  # without the prefix cblas_
GEMV = {"f32": "sgemv", "f64": "dgemv"}
# "sgemm" -> (address of the function, MLIR type of its integers); raises TunerError where there is none
Find = Callable[[str], tuple[int, str]]
TASKS = Path("/proc/self/task")
WORK_S = 0.02  # of repeated calls; a working thread shows by then in the processor times
Operands = tuple[Array, Array, Array]  # A, B, C
LETTER = {"f32": "s", "f64": "d"}
SCALAR = {"f32": ctypes.c_float, "f64": ctypes.c_double}
PLAIN = (0, "i32")  # BLIS_NO_TRANSPOSE, BLIS_NO_CONJUGATE: strides say what is transposed
# mkl_service.h: threads by libiomp5, or none
INTEL = 0
SEQUENTIAL = 1
MAPS = Path("/proc/self/maps")
KERNELS = re.compile(r"/libmkl_(?!vml_|core|rt|intel|sequential|gnu)(\w+)\.so")
Symbols = tuple[tuple[str, str], ...]  # name of a function, with {} for the operation; type of integers
MKL_SYMBOLS: Symbols = (("cblas_{}", "i32"),)
OPENBLAS_SYMBOLS: Symbols = (("scipy_cblas_{}64_", "i64"), ("cblas_{}64_", "i64"), *MKL_SYMBOLS)


@dataclass(frozen=True)
class LibraryCall:
    """A call of a C function by its address, to be compiled.

    ``arguments``: (constant or name of an SSA value, MLIR type); an integer of type ``!llvm.ptr`` is an
    address.
    """

    address: int
    arguments: tuple[Argument, ...]
    result: str = ""  # MLIR type; "": the function returns nothing


def calling_module(*calls: LibraryCall) -> str:
    """Returns LLVM-dialect text with a function ``baseline`` of A, B and C that makes the calls in order.

    Their results are ignored.
    """
    lines: list[str] = []
    for call_index, call in enumerate(calls):
        names = []
        for index, (value, type_) in enumerate(((call.address, POINTER), *call.arguments)):
            name = value if isinstance(value, str) else f"%v{call_index}_{index}"
            names.append(name)
            if isinstance(value, str):
                continue
            if type_ == POINTER:
                lines.append(f"    {name}_address = llvm.mlir.constant({value} : i64) : i64")
                lines.append(f"    {name} = llvm.inttoptr {name}_address : i64 to {POINTER}")
            else:
                lines.append(f"    {name} = llvm.mlir.constant({value} : {type_}) : {type_}")
        function, *arguments = names
        returned = f"%r{call_index} = " if call.result else ""
        signature = f"{POINTER}, ({', '.join(type_ for _, type_ in call.arguments)}) -> {call.result or '()'}"
        lines.append(f"    {returned}llvm.call {function}({', '.join(arguments)}) : {signature}")
    body = "\n".join(lines)
    return f"""module {{
  llvm.func @baseline(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
{body}
    llvm.return
  }}
}}
"""


def cblas_call(problem: Problem, find: Find) -> LibraryCall:
    """Returns the cblas call of a matmul of f32, f64 or bf16: gemv if ``is_vector``, else gemm.

    ``find`` gives the address of a cblas function, and the type of its integers.
    """
    scalar = "f64" if problem.dtype == "f64" else "f32"
    one = (1.0, scalar)
    zero = (0.0, scalar)
    order = (ROW_MAJOR, "i32")
    m, n, k = problem.sizes
    if is_vector(problem):  # a row vector times B is B^T times a column vector
        address, i = find(GEMV[problem.dtype])
        rows, columns, trans = (n, k, NO_TRANS) if problem.layout == "nt" else (k, n, TRANS)
        sizes = ((trans, "i32"), (rows, i), (columns, i))
        return LibraryCall(address, (order, *sizes, one, B, (columns, i), A, (1, i), zero, C, (1, i)))
    address, i = find(GEMM[problem.dtype])
    trans_a, lda = (TRANS, m) if problem.layout == "tn" else (NO_TRANS, k)
    trans_b, ldb = (TRANS, k) if problem.layout == "nt" else (NO_TRANS, n)
    head = (order, (trans_a, "i32"), (trans_b, "i32"), (m, i), (n, i), (k, i), one)
    return LibraryCall(address, (*head, A, (lda, i), B, (ldb, i), zero, C, (n, i)))


def strides(problem: Problem) -> tuple[tuple[int, int], tuple[int, int]]:
    """Returns the strides in elements, (row, column), of A (m x k) and of B (k x n), by the layout."""
    m, n, k = problem.sizes
    return (1, m) if problem.layout == "tn" else (k, 1), (1, k) if problem.layout == "nt" else (n, 1)


def is_vector(problem: Problem) -> bool:
    """Returns whether a BLAS computes the problem by gemv: one contiguous row of A, in f32 or f64."""
    return problem.sizes[0] == 1 and problem.layout != "tn" and problem.dtype in GEMV


def address_of(function: object) -> int:
    """Returns the address of a function that ctypes has loaded; 0 for a null pointer."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def pin_working_threads(repeat: Callable[[int], None], processors: tuple[int, ...]) -> None:
    """Pins the threads that compute ``repeat(1)`` to ``processors``, one each, busiest first.

    The calling thread gets the first processor. Runs ``repeat`` for WORK_S seconds to find the threads.
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
    """Returns the seconds of processor time of each thread of this process, by thread ID.

    Source: /proc/self/task/*/schedstat, see sched-stats.txt of the Linux kernel.
    """
    seconds = {}
    for task in TASKS.iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            seconds[int(task.name)] = int((task / "schedstat").read_text().split()[0]) * 1e-9
    return seconds


@dataclass(frozen=True, eq=False)
class LibraryCode:
    """Code that calls a library to compute one problem: the library's name, and LLVM-dialect text."""

    name: str
    text: str  # of ``calling_module``
    computes_batch: bool = False  # True: a call computes every matrix of a batch; False: one of them
    kept: tuple[object, ...] = ()  # objects that own memory whose addresses are in ``text``


# (problem, operands, threads) -> code. Raises TunerError for a library that cannot compute the problem. That
# the library is there, ``BaselineService`` has checked.
Describe = Callable[[Problem, Operands, int], LibraryCode]


class AbstractLibraryMatmul(abc.ABC):
    """A baseline library's matmul of given inputs, at fixed addresses."""

    name: str  # with version and kernel: "MKL 2026.2 avx512"
    operands: tuple[Array, ...]  # A, B and C in memory, with the problem's alignment and no more

    @abc.abstractmethod
    def repeat(self, times: int) -> None:
        """Computes the matmul of the inputs ``times`` times in a row."""

    @abc.abstractmethod
    def once(self) -> Callable[[], object]:
        """Returns a function that computes the matmul once with little overhead, for timing single calls."""

    @property
    @abc.abstractmethod
    def result(self) -> Array:
        """Returns C of the last multiplication, of shape (rows of all matrices of a batch, n)."""


@final
class CompiledLibraryMatmul(AbstractLibraryMatmul):
    """A C library's matmul, called from JIT-compiled code, without Python in between."""

    def __init__(self, problem: Problem, inputs: Inputs, threads: int, describe: Describe) -> None:
        """Copies the inputs, compiles the call that ``describe`` returns, and pins the library's threads.

        Raises TunerError if the library cannot compute the problem.
        """
        offset = problem.offset_bytes
        result = placed_empty((problem.rows, problem.sizes[1]), output_dtype(problem), offset)
        self.operands = operands = (placed_copy(inputs.a, offset), placed_copy(inputs.b, offset), result)
        described = describe(problem, operands, threads)
        self.name = described.name
        if problem.batch > 1 and not described.computes_batch:
            self.name += ", a call for each matrix"
        m, n, _ = problem.sizes
        matrices = 1 if described.computes_batch else problem.batch
        whole = Partition("baseline", 0, 0, m, n, 0, matrices)
        bare = matrix_bytes(replace(problem, epilogue="none"))
        self._code = JittedModule(with_batch_loops(described.text, (whole,), bare), (whole.called,))
        self._arguments = PackedArguments(*(operand.ctypes.data for operand in operands))
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


# BLIS, of the system (libblis) or of the wheel ``blis``, by its typed interface, which both have.


def blis_code(problem: Problem, _operands: Operands, threads: int) -> LibraryCode:
    """Returns BLIS's name, such as "BLIS 0.9.0 skx", and code that calls it; sets its number of threads.

    Raises TunerError if several threads are asked for, and BLIS was built for one.
    """
    path = LIBRARIES[BLIS].find()
    assert path is not None  # ``BaselineService`` requires it
    library = load_library(path)
    library.bli_init()
    if threads > 1 and not (library.bli_info_get_enable_openmp() or library.bli_info_get_enable_pthreads()):
        raise TunerError(f"{path} was built for one thread, asked for {threads}")
    integer = f"i{library.bli_info_get_int_type_size()}"
    library.bli_thread_set_num_threads(
        ctypes.c_int64(threads) if integer == "i64" else ctypes.c_int32(threads)
    )
    scales = (SCALAR[problem.dtype](1.0), SCALAR[problem.dtype](0.0))
    one, zero = ((ctypes.addressof(scale), POINTER) for scale in scales)
    m, n, k, unit = ((size, integer) for size in (*problem.sizes, 1))
    of_a, of_b = ([(step, integer) for step in stride] for stride in strides(problem))
    arguments: tuple[Argument, ...] = (m, n, k, one, A, *of_a, B, *of_b, zero, C, n, unit)
    if is_vector(problem):  # the row vector A times B is B^T (n x k) times a column vector
        arguments = (n, k, one, B, *reversed(of_b), A, unit, zero, C, unit)
    operation = LETTER[problem.dtype] + ("gemv" if is_vector(problem) else "gemm")
    call = LibraryCall(address_of(getattr(library, f"bli_{operation}")), (PLAIN, PLAIN, *arguments))
    library.bli_info_get_version_str.restype = ctypes.c_char_p
    library.bli_arch_string.restype = ctypes.c_char_p
    version = library.bli_info_get_version_str().decode()
    name = f"BLIS {version} {library.bli_arch_string(library.bli_arch_query_id()).decode()}"
    return LibraryCode(name, calling_module(call), kept=(scales,))


blis_matmul = partial(CompiledLibraryMatmul, describe=blis_code)


# MKL, of the wheel ``mkl`` or of the system.


class MklVersion(ctypes.Structure):
    """The struct MKLVersion of mkl_types.h."""

    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("update", ctypes.c_int),
        *((name, ctypes.c_char_p) for name in ("status", "build", "processor", "platform")),
    )


def mkl_code(problem: Problem, _operands: Operands, threads: int) -> LibraryCode:
    """Returns MKL's name, such as "MKL 2026.2 avx512", and code that calls it; sets its number of threads.

    Several threads are those of Intel's OpenMP. Raises TunerError if the MKL lacks the function.
    """
    path = LIBRARIES[MKL].find()
    assert path is not None  # ``BaselineService`` requires it
    library = load_library(path)
    library.MKL_Set_Threading_Layer(SEQUENTIAL if threads == 1 else INTEL)
    library.MKL_Set_Dynamic(0)
    library.MKL_Set_Num_Threads(threads)
    find = _finder(library, MKL_SYMBOLS, path)
    version = MklVersion()
    library.MKL_Get_Version(ctypes.byref(version))
    # the first call of a function loads MKL's library of kernels
    zero = ctypes.c_float(0.0)
    one = ctypes.byref(ctypes.c_float(1.0))
    library.cblas_sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, 1, 1, 1, zero, one, 1, one, 1, zero, one, 1)
    loaded = KERNELS.search(MAPS.read_text())
    kernels = loaded[1] if loaded else "unknown kernels"
    amx = "_amx" if problem.dtype == "bf16" and b"AMX" in (version.processor or b"") else ""
    name = f"MKL {version.major}.{version.update} {kernels}{amx}"
    return LibraryCode(name, calling_module(cblas_call(problem, find)))


mkl_matmul = partial(CompiledLibraryMatmul, describe=mkl_code)


# The OpenBLAS of numpy.

NUMPY = "numpy"  # in the path of the library that its wheel brings


def _finder(library: Any, symbols: Symbols, path: str) -> Find:
    def find(operation: str) -> tuple[int, str]:
        for pattern, integer in symbols:
            function = getattr(library, pattern.format(operation), None)
            if function is not None:
                return address_of(function), integer
        raise TunerError(f"no cblas_{operation} in {path}")

    return find


def openblas_code(problem: Problem, _operands: Operands, _threads: int) -> LibraryCode:
    """Returns the name of numpy's OpenBLAS, "openblas 0.3.30 SkylakeX", and code that calls it.

    Raises TunerError if numpy has no BLAS, or it lacks the function.
    """
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    if not pools:
        raise TunerError("numpy's BLAS was not found in this process")
    pools.sort(key=lambda pool: NUMPY not in pool["filepath"])  # scipy brings an OpenBLAS of its own
    blas = pools[0]
    path = blas["filepath"]
    find = _finder(ctypes.CDLL(path), OPENBLAS_SYMBOLS, path)
    # the kernel it chose: OPENBLAS_CORETYPE would show here
    name = f"{blas['internal_api']} {blas['version']} {blas.get('architecture', '')}".strip()
    return LibraryCode(name, calling_module(cblas_call(problem, find)))


openblas_matmul = partial(CompiledLibraryMatmul, describe=openblas_code)
