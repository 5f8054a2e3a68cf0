"""Calls of BLAS reach the function with the arguments of cblas.h: gemv for a contiguous row, else gemm."""

import contextlib
import ctypes
import os
import threading
import time
from functools import partial

import pytest

from tests.forked import in_child
from tests.targets.evaluation import fails
from tests.tuning.fakes import present
from tuner.core.errors import Stage
from tuner.core.matmul import Matmul
from tuner.runtime.cpu.host import processors
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.targets.cpu import blas
from tuner.targets.cpu.blas import LibraryCall, address_of, cblas_call, pin_working_threads
from tuner.targets.cpu.side_effects import no_thread_started

INT, FLOAT, POINTER = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
GEMM = ctypes.CFUNCTYPE(None, *(INT,) * 6, FLOAT, POINTER, INT, POINTER, INT, FLOAT, POINTER, INT)
GEMV = ctypes.CFUNCTYPE(None, *(INT,) * 4, FLOAT, POINTER, INT, POINTER, INT, FLOAT, POINTER, INT)


def run(*calls: LibraryCall) -> None:
    code = JittedModule(blas.calling_module(*calls), ("baseline",))
    CompiledFunction(code.addresses["baseline"])(PackedArguments(1, 2, 3))


def received(m: int, n: int, k: int, layout: str, dtype: str = "f32") -> tuple[str, tuple[float, ...]]:
    seen: list[tuple[float, ...]] = []
    asked: list[str] = []

    def take(*arguments: float) -> None:
        seen.append(arguments)

    functions = {"gemm": GEMM(take), "gemv": GEMV(take)}

    def find(operation: str) -> tuple[int, str]:
        asked.append(operation)
        return address_of(functions["gemv" if operation.endswith("gemv") else "gemm"]), "i32"

    run(cblas_call(Matmul(m, n, k, dtype, layout), find))
    return asked[0], seen[0]


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("layout", "trans_a", "trans_b", "lda", "ldb"),
    [("nn", 111, 111, 7, 5), ("nt", 111, 112, 7, 7), ("tn", 112, 111, 3, 5)],
)
@pytest.mark.parametrize(("dtype", "name"), [("f32", "sgemm"), ("bf16", "gemm_bf16bf16f32")])
def test_gemm_gets_sizes_strides_and_operands(
    layout: str, trans_a: int, trans_b: int, lda: int, ldb: int, dtype: str, name: str
) -> None:
    asked, arguments = received(3, 5, 7, layout, dtype)
    assert asked == name
    assert arguments == (101, trans_a, trans_b, 3, 5, 7, 1.0, 1, lda, 2, ldb, 0.0, 3, 5)


@pytest.mark.mlir
@pytest.mark.parametrize(("layout", "trans", "rows", "columns"), [("nn", 112, 7, 5), ("nt", 111, 5, 7)])
def test_gemv_multiplies_a_row_where_it_takes_it(layout: str, trans: int, rows: int, columns: int) -> None:
    assert received(1, 5, 7, "tn")[0] == "sgemm"
    assert received(1, 5, 7, layout, "bf16")[0] == "gemm_bf16bf16f32"
    asked, arguments = received(1, 5, 7, layout)
    assert asked == "sgemv"
    assert arguments == (101, trans, rows, columns, 1.0, 2, columns, 1, 1, 0.0, 3, 1)


@pytest.mark.mlir
def test_calls_are_made_in_order_and_what_they_return_is_ignored() -> None:
    calls: list[tuple[int, int]] = []

    def take(number: int, address: int) -> int:
        calls.append((number, address))
        return 5

    function = ctypes.CFUNCTYPE(INT, INT, POINTER)(take)
    place, c = (4096, "!llvm.ptr"), ("%c", "!llvm.ptr")
    run(*(LibraryCall(address_of(function), ((n, "i32"), at), "i32") for n, at in ((7, place), (8, c))))
    assert calls == [(7, 4096), (8, 3)]  # C is at 3


# Threads: those of a library get processors of their own, those that a kernel starts are seen.


def affinities() -> dict[int, frozenset[int]]:
    found = {}
    for task in (int(entry.name) for entry in blas.TASKS.iterdir()):
        with contextlib.suppress(ProcessLookupError):  # a thread that was joined may be on its way out
            found[task] = frozenset(os.sched_getaffinity(task))
    return found


def caller_and_busiest_are_pinned() -> bool:
    """The caller is a thread of its own here: the affinity of the main thread must stay."""
    over, before = threading.Event(), affinities()
    call = partial(pin_working_threads, lambda _: time.sleep(0.001), processors(2))

    def spin() -> None:
        while not over.is_set():
            pass

    idle, busy, caller = (threading.Thread(target=each) for each in (over.wait, spin, call))
    idle.start()
    busy.start()
    try:
        caller.start()
        caller.join()
        found = affinities()
    finally:
        over.set()
        idle.join()
        busy.join()
    assert found[present(busy.native_id)] == {processors(2)[1]}
    assert found[present(idle.native_id)] == before[threading.get_native_id()]
    still = before.keys() & found.keys()
    assert threading.get_native_id() in still
    assert {task: before[task] for task in still} == {task: found[task] for task in still}
    return True


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_the_caller_and_the_busiest_thread_are_pinned_and_no_other() -> None:
    """A process of its own: a thread of another test may be busier."""
    assert in_child(caller_and_busiest_are_pinned)


def test_one_processor_pins_the_caller_alone() -> None:
    found: list[frozenset[int]] = []

    def call() -> None:
        pin_working_threads(lambda _: None, processors(1))
        found.append(frozenset(os.sched_getaffinity(0)))

    caller = threading.Thread(target=call)
    caller.start()
    caller.join()
    assert found == [frozenset(processors(1))]


def only_what_goes_on_is_seen() -> bool:
    done = threading.Event()
    with fails(Stage.RUN, match=r"^started 1 threads that go on after it returned$"), no_thread_started():
        threading.Thread(target=done.wait, daemon=True).start()
    with no_thread_started():
        pass
    done.set()
    return True


def test_a_thread_that_goes_on_is_seen_and_those_of_before_are_none_of_its_doing() -> None:
    """A process of its own: threads of other tests, which may end at any time, are not counted."""
    assert in_child(only_what_goes_on_is_seen)
