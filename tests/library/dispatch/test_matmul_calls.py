import numpy as np
import pytest

from tests.library.dispatch.rules import configurations, space
from tuner.core.problem import Matmul, Problem
from tuner.library.dispatch.first_use import (
    MISALIGNED,
    OUT,
    KernelCall,
    KernelLoader,
    numpy_product,
    problem_of,
)
from tuner.payload.reference import Array
from tuner.runtime.cpu.memory import placed_copy

RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((6, 20)).astype(np.float32), RNG.standard_normal((20, 33)).astype(np.float32)


def test_arrays_of_c_order_are_the_problem_of_their_exact_sizes() -> None:
    assert problem_of(A, B, "16") == Matmul(6, 33, 20)
    assert problem_of(A.astype(np.float64), B.astype(np.float64), "any") == Matmul(
        6, 33, 20, "f64", align="any"
    )


def test_a_transposed_view_is_a_layout() -> None:
    assert problem_of(A, np.asfortranarray(B), "16") == Matmul(6, 33, 20, layout="nt")
    assert problem_of(np.asfortranarray(A), B, "16") == Matmul(6, 33, 20, layout="tn")


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (A, B.astype(np.float64), "types float32 and float64"),
        (A.astype(">f4"), B.astype(">f4"), "types >f4 and >f4"),
        (A.astype(np.int8), B.astype(np.int8), "types int8 and int8"),
        (A[0], B, "shapes (20,) and (20, 33)"),
        (A[:, :3], B, "shapes (6, 3)"),
        (A[:0], B, "shapes (0, 20)"),
        (A[:, ::2], B[:10], "strides"),
        (np.asfortranarray(A), np.asfortranarray(B), "strides"),
        (np.ma.array(A), B, "not two plain numpy arrays"),
    ],
)
def test_what_no_kernel_is_tuned_for_is_said(a: Array, b: Array, reason: str) -> None:
    found = problem_of(a, b, "16")
    assert isinstance(found, str)
    assert reason in found


def refused(_a: Array, _b: Array, _out: Array | None, reason: str) -> Array:
    return np.array([reason])


def loaded(problem: Problem, threads: int = 1) -> KernelCall:
    direct = configurations()[1].candidate
    (candidate,) = space(threads).projected(problem, (direct,)).candidates
    assert candidate is not None
    return KernelLoader(threads).loaded(problem, space(threads).script(problem, candidate).text, refused)


@pytest.fixture(scope="module")
def call() -> KernelCall:
    return loaded(Matmul(6, 33, 20))


@pytest.mark.mlir
def test_a_kernel_computes_the_product_in_a_new_array_or_in_out(call: KernelCall) -> None:
    expected = numpy_product(A, B, None)
    assert np.allclose(call(A, B, None), expected, atol=1e-5)
    out = np.full((6, 33), np.nan, np.float32)
    assert call(A, B, out) is out
    assert np.allclose(out, expected, atol=1e-5)


@pytest.mark.mlir
def test_inputs_may_be_read_only(call: KernelCall) -> None:
    a = A.copy()
    a.flags.writeable = False
    assert np.allclose(call(a, B, None), A @ B, atol=1e-5)


@pytest.mark.mlir
@pytest.mark.parametrize("layout", ["nt", "tn"])
def test_a_transposed_view_is_read_as_it_is_stored(layout: str) -> None:
    a = np.asfortranarray(A) if layout == "tn" else A
    b = np.asfortranarray(B) if layout == "nt" else B
    assert np.allclose(loaded(Matmul(6, 33, 20, layout=layout))(a, b, None), A @ B, atol=1e-5)


@pytest.mark.mlir
def test_outputs_that_kernels_cannot_write_are_left_to_numpy(call: KernelCall) -> None:
    read_only = np.empty((6, 33), np.float32)
    read_only.flags.writeable = False
    square = RNG.standard_normal((33, 33)).astype(np.float32)
    others = (
        read_only,
        np.empty((6, 33), np.float64),
        np.empty((7, 33), np.float32),
        np.empty((6, 66), np.float32)[:, ::2],
        np.asfortranarray(np.empty((6, 33), np.float32)),
    )
    assert [call(A, B, out)[0] for out in others] == [OUT] * len(others)
    assert call(A, square[:20], square[:6])[0] == OUT  # shares memory with b


@pytest.mark.mlir
def test_arrays_with_less_alignment_are_left_to_another_kernel(call: KernelCall) -> None:
    off = placed_copy(A, 4)
    assert call(off, B, None)[0] == MISALIGNED.format(16)
    anywhere = loaded(Matmul(6, 33, 20, align="any"))
    assert np.allclose(anywhere(off, B, None), A @ B, atol=1e-5)
