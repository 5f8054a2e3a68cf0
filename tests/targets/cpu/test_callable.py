"""A tuned kernel as a callable on the user's own arrays."""

import threading

import numpy as np
import pytest

from tests.targets.cpu.test_target import POINTS, point_of
from tuner.core.errors import UsageError
from tuner.core.problem import EPILOGUES, LAYOUTS, Matmul, Problem
from tuner.payload.reference import compare, draw, draw_base
from tuner.targets.cpu.callable import CpuCallable, load_callable

pytestmark = pytest.mark.mlir

SMALL = Matmul(4, 64, 3)


def callable_of(problem: Problem, threads: int = 1, split: str = "none") -> CpuCallable:
    kernel = load_callable(problem, POINTS.bind(point_of(problem, threads, split)).text, threads)
    assert isinstance(kernel, CpuCallable)
    return kernel


@pytest.fixture(scope="module")
def small() -> CpuCallable:
    return callable_of(SMALL)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize(("threads", "split"), [(1, "none"), (2, "n")])
def test_it_multiplies_whatever_the_layout_and_the_threads(
    layout: str, epilogue: str, threads: int, split: str
) -> None:
    problem = Problem("matmul", (33, 199, 41), "f32", layout, epilogue)
    rng = np.random.default_rng(0)
    kernel, inputs = callable_of(problem, threads, split), draw(problem, draw_base(problem, rng), rng)
    assert compare(inputs, kernel(*inputs.arrays))[0].max_error <= 1.0


def test_it_writes_into_out_and_returns_it(small: CpuCallable) -> None:
    a, b, out = np.ones((4, 3), np.float32), np.ones((3, 64), np.float32), np.empty((4, 64), np.float32)
    assert small(a, b, out=out) is out
    assert (out == 3.0).all()


def test_callers_in_several_threads_take_turns(small: CpuCallable) -> None:
    right: list[bool] = []

    def work(number: int) -> None:
        a, b = np.full((4, 3), number, np.float32), np.ones((3, 64), np.float32)
        right.extend(bool((small(a, b) == 3.0 * number).all()) for _ in range(200))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 800


A, B = np.ones((4, 3), np.float32), np.ones((3, 64), np.float32)
READ_ONLY = np.empty((4, 64), np.float32)
READ_ONLY.flags.writeable = False
SHARED = np.ones((4, 64), np.float32)


@pytest.mark.parametrize(
    ("inputs", "out", "message"),
    [
        ((A,), None, r"^matmul 4x64x3 f32 nn none: found 1 arrays, allowed a, b$"),
        ((A, B, B), None, r": found 3 arrays, allowed a, b$"),
        (
            (A.tolist(), B),
            None,
            r"^a: found list, allowed a numpy array; convert it: np\.asarray\(a, 'float32'\)$",
        ),
        (
            (A.T, B),
            None,
            r"^a: found float32 of shape \(3, 4\), allowed float32 of shape \(4, 3\); transpose it",
        ),
        ((A.astype(np.float64), B), None, r"^a: found float64 of shape \(4, 3\), allowed float32"),
        (
            (A, np.ones((64, 3), np.float32).T),
            None,
            r"^b: found strides \(4, 12\), .* array; copy it: np\.ascontiguousarray\(b\)$",
        ),
        ((A, B), np.empty((64, 4), np.float32), r"^out: found float32 of shape \(64, 4\), allowed"),
        ((A, B), READ_ONLY, r"^out: found a read-only array, allowed one that can be written$"),
        ((A, SHARED[:3]), SHARED, r"^out: found memory of b, allowed memory of its own$"),
    ],
)
def test_arrays_that_do_not_fit_are_named(
    inputs: tuple[np.ndarray[tuple[int, int], np.dtype[np.float32]], ...],
    out: np.ndarray[tuple[int, int], np.dtype[np.float32]] | None,
    message: str,
    small: CpuCallable,
) -> None:
    with pytest.raises(UsageError, match=message):
        small(*inputs, out=out)
