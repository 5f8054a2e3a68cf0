"""Calls of BLAS reach the function with the arguments of cblas.h: gemv for a contiguous row, else gemm."""

import ctypes

import pytest

from tuner.core.problem import Matmul
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.targets.cpu.blas import LibraryCall, address_of, calling_module, cblas_call

pytestmark = pytest.mark.mlir

INT, FLOAT, POINTER = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
GEMM = ctypes.CFUNCTYPE(None, *(INT,) * 6, FLOAT, POINTER, INT, POINTER, INT, FLOAT, POINTER, INT)
GEMV = ctypes.CFUNCTYPE(None, *(INT,) * 4, FLOAT, POINTER, INT, POINTER, INT, FLOAT, POINTER, INT)


def run(*calls: LibraryCall) -> None:
    """Runs the compiled calls with the addresses 1, 2 and 3 as A, B and C."""
    code = JittedModule(calling_module(*calls), ("baseline",))
    CompiledFunction(code.addresses["baseline"])(PackedArguments(1, 2, 3))


def received(m: int, n: int, k: int, layout: str, dtype: str = "f32") -> tuple[str, tuple[float, ...]]:
    """Returns the name of the called function and the arguments that arrive there."""
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


@pytest.mark.parametrize(("layout", "trans", "rows", "columns"), [("nn", 112, 7, 5), ("nt", 111, 5, 7)])
def test_a_row_is_multiplied_by_gemv(layout: str, trans: int, rows: int, columns: int) -> None:
    asked, arguments = received(1, 5, 7, layout)
    assert asked == "sgemv"
    assert arguments == (101, trans, rows, columns, 1.0, 2, columns, 1, 1, 0.0, 3, 1)


@pytest.mark.parametrize(
    ("layout", "dtype", "name"), [("tn", "f32", "sgemm"), ("nn", "bf16", "gemm_bf16bf16f32")]
)
def test_a_row_that_gemv_does_not_take_is_multiplied_by_gemm(layout: str, dtype: str, name: str) -> None:
    assert received(1, 5, 7, layout, dtype)[0] == name


def test_calls_are_made_in_order_and_what_they_return_is_ignored() -> None:
    order: list[int] = []
    returning = ctypes.CFUNCTYPE(INT, INT, POINTER)

    def first(number: int, address: int) -> int:
        order.append(number)
        assert address == 4096
        return 5

    def second(number: int, address: int) -> int:
        order.append(number)
        assert address == 3  # C
        return 6

    functions = (returning(first), returning(second))
    place, c = (4096, "!llvm.ptr"), ("%c", "!llvm.ptr")
    run(
        LibraryCall(address_of(functions[0]), ((7, "i32"), place), "i32"),
        LibraryCall(address_of(functions[1]), ((8, "i32"), c), "i32"),
    )
    assert order == [7, 8]
