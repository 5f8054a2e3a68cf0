"""OpenBLAS as numpy ships it, called from JIT-compiled code like tuned kernels, without Python in between."""

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import threadpoolctl

from tuner.core.errors import TunerError
from tuner.core.problem import Problem
from tuner.core.target import Partition
from tuner.mlir.cpu.batch_loops import with_batch_loops
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.payload.cpu import matrix_bytes
from tuner.payload.reference import Inputs, output_dtype
from tuner.runtime.cpu.describe_host import processors
from tuner.runtime.cpu.guarded_arrays import placed_copy, placed_empty
from tuner.runtime.cpu.thread_team import ThreadTeam

ROW_MAJOR, NO_TRANS, TRANS = 101, 111, 112  # cblas.h
SYMBOLS = (("scipy_cblas_{}64_", "i64"), ("cblas_{}64_", "i64"), ("cblas_{}", "i32"))  # name, integer type
LETTER = {"f32": "s", "f64": "d"}
Argument = tuple[int | str, str]  # (value or SSA name, type)
TASKS = Path("/proc/self/task")
WORK_S = 0.02  # of repeated calls; a working thread shows by then in the processor times


class OpenBlasMatmul:
    """The matmul of given inputs by a cblas function of the OpenBLAS that numpy has loaded.

    The arrays have the problem's alignment and no more, as those of the kernels that it is compared with.
    """

    def __init__(self, problem: Problem, inputs: Inputs, threads: int) -> None:
        """Finds the library that numpy loaded. Raises TunerError where library or function is missing."""
        found = next((one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"), None)
        if found is None:
            raise TunerError("baseline: numpy's BLAS was not found in this process")
        # the kernel it chose: OPENBLAS_CORETYPE would show here
        self.name = f"{found['internal_api']} {found['version']} {found.get('architecture', '')}".strip()
        offset = problem.offset_bytes
        self.result = placed_empty((problem.rows, problem.sizes[1]), output_dtype(problem), offset)
        self.operands = (placed_copy(inputs.a, offset), placed_copy(inputs.b, offset), self.result)
        m, n, _ = problem.sizes
        whole = Partition("baseline", 0, 0, m, n, 0, problem.batch)
        code = _call_mlir(problem.one, found["filepath"])
        bare = matrix_bytes(replace(problem, epilogue="none"))
        self._code = JittedModule(with_batch_loops(code, (whole,), bare), (whole.called,))
        self._arguments = PackedArguments(*(each.ctypes.data for each in self.operands))
        self._calls = ((self._code.addresses[whole.called], self._arguments.address),)
        if problem.batch > 1:
            self.name += ", a call for each matrix"
        self._team = ThreadTeam(1)
        pin_working_threads(self.repeat, processors(threads))

    def repeat(self, times: int) -> None:
        """Computes the matmul of the same inputs ``times`` times."""
        self._team.repeat(self._calls, times)

    def once(self) -> Callable[[], object]:
        """Returns a function that computes the matmul once, and does little else."""
        return self._team.once(self._calls)


def _call_mlir(problem: Problem, library: str) -> str:
    """Returns LLVM-dialect text of one cblas call on pointers: gemv for a single row, gemm otherwise."""
    is_vector = problem.sizes[0] == 1 and problem.layout != "tn"
    operation = LETTER[problem.dtype] + ("gemv" if is_vector else "gemm")
    function, integer = _find(library, operation)
    arguments = (_gemv if is_vector else _gemm)(problem, integer)
    return _module(arguments, function, "f64" if problem.dtype == "f64" else "f32")


def _find(library: str, operation: str) -> tuple[int, str]:
    """Returns the address of a cblas function and the MLIR type of its integers."""
    loaded: Any = ctypes.CDLL(library)
    for pattern, integer in SYMBOLS:
        function = getattr(loaded, pattern.format(operation), None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0, integer
    raise TunerError(f"baseline: no cblas {operation} in {library}")


def _gemm(problem: Problem, i: str) -> list[Argument]:
    m, n, k = problem.sizes
    trans_a, lda = (TRANS, m) if problem.layout == "tn" else (NO_TRANS, k)
    trans_b, ldb = (TRANS, k) if problem.layout == "nt" else (NO_TRANS, n)
    head: list[Argument] = [(ROW_MAJOR, "i32"), (trans_a, "i32"), (trans_b, "i32"), (m, i), (n, i), (k, i)]
    return [
        *head,
        ("%one", ""),
        ("%a", "ptr"),
        (lda, i),
        ("%b", "ptr"),
        (ldb, i),
        ("%zero", ""),
        ("%c", "ptr"),
        (n, i),
    ]


def _gemv(problem: Problem, i: str) -> list[Argument]:
    """Returns the arguments of cblas gemv: a row vector times B is B^T times a column vector."""
    _, n, k = problem.sizes
    rows, columns, trans = (n, k, NO_TRANS) if problem.layout == "nt" else (k, n, TRANS)
    head: list[Argument] = [(ROW_MAJOR, "i32"), (trans, "i32"), (rows, i), (columns, i), ("%one", "")]
    return [
        *head,
        ("%b", "ptr"),
        (columns, i),
        ("%a", "ptr"),
        (1, i),
        ("%zero", ""),
        ("%c", "ptr"),
        (1, i),
    ]


def _module(arguments: list[Argument], function: int, scalar: str) -> str:
    lines = [f"%address = llvm.mlir.constant({function} : i64) : i64"]
    names, types = [], []
    for index, (value, kind) in enumerate(arguments):
        types.append({"ptr": "!llvm.ptr", "": scalar}.get(kind, kind))
        names.append(value if isinstance(value, str) else f"%v{index}")
        if not isinstance(value, str):
            lines.append(f"%v{index} = llvm.mlir.constant({value} : {kind}) : {kind}")
    body = "\n    ".join(lines)
    return f"""module {{
  llvm.func @baseline(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
    %one = llvm.mlir.constant(1.0 : {scalar}) : {scalar}
    %zero = llvm.mlir.constant(0.0 : {scalar}) : {scalar}
    {body}
    %function = llvm.inttoptr %address : i64 to !llvm.ptr
    llvm.call %function({", ".join(names)}) : !llvm.ptr, ({", ".join(types)}) -> ()
    llvm.return
  }}
}}
"""


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
