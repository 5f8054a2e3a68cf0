import pickle
import threading
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.default_suite import ALL
from tests.epilogues import EPILOGUES
from tests.forked import in_child
from tests.targets.cpu.test_evaluator import POINTS, point_of
from tests.tuning.fakes import present
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import Array
from tuner.runtime.cpu.host import describe_machine
from tuner.runtime.cpu.memory import address_of
from tuner.space.scripts.choice import default_script
from tuner.targets.cpu.callables import CpuCallable, load_callable
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.targets.cpu.loaded_kernel import AddressCall

PROBLEM = Matmul(9, 33, 17)


def test_addresses_are_those_of_the_first_element() -> None:
    array = np.ones((4, 6), np.float32)
    read_only = array.copy()
    read_only.flags.writeable = False
    for each in (array, array[1:], array.T, array[:, 1:], read_only, np.asfortranarray(array)):
        assert address_of(each) == each.ctypes.data


def in_four_threads(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.mlir
def test_threads_call_one_kernel_at_once() -> None:
    script = present(default_script(PROBLEM, describe_machine()))
    call = AddressCall(CpuEvaluator(1).load(PROBLEM, CpuCompiler().compile(PROBLEM, script)))
    rng = np.random.default_rng(0)
    wrong: list[float] = []

    def repeat(seed: int) -> None:
        a = rng.standard_normal((9, 17)).astype(np.float32) * seed
        b = np.ones((17, 33), np.float32)
        for _ in range(200):
            c = np.full((9, 33), np.nan, np.float32)
            call(address_of(a), address_of(b), address_of(c))
            wrong.extend(np.abs(c - a @ b).max(initial=0.0, where=~np.isclose(c, a @ b, atol=1e-3)).ravel())

    in_four_threads(repeat)
    assert len(wrong) == 800
    assert max(wrong) == 0.0


# A tuned kernel as a callable on the user's own arrays.
SMALL = Matmul(4, 64, 3)
A, B = np.ones((4, 3), np.float32), np.ones((3, 64), np.float32)
SHARED, READ_ONLY = np.ones((4, 64), np.float32), np.empty((4, 64), np.float32)
READ_ONLY.flags.writeable = False
TO_TRANSPOSE = r"^a: found float32 of shape \(3, 4\), allowed float32 of shape \(4, 3\); transpose it"
TO_COPY = r"^b: found strides \(4, 12\), .* array; copy it: np\.ascontiguousarray\(b\)$"
TO_CONVERT = r"^a: found list, allowed a numpy array; convert it: np\.asarray\(a, 'float32'\)$"
MASKED = r"^a: masked arrays are not supported: pass its \.data or \.filled\(\)$"


def callable_of(problem: Problem, threads: int = 1, split: str = "none") -> CpuCallable:
    kernel = load_callable(problem, POINTS.bind(point_of(problem, threads, split)).text, threads)
    assert isinstance(kernel, CpuCallable)
    return kernel


@pytest.fixture(scope="module")
def small() -> CpuCallable:
    return callable_of(SMALL)


@pytest.mark.mlir
@pytest.mark.drawn(1)
@pytest.mark.parametrize(("row", "layout"), list(enumerate(LAYOUTS)))
@pytest.mark.parametrize(("column", "epilogue"), list(enumerate(EPILOGUES)))
def test_it_multiplies_in_each_layout(row: int, layout: str, column: int, epilogue: str) -> None:
    """Runs all pairs of two of layout, epilogue and threads, which know nothing of each other."""
    threads, split = ((1, "none"), (2, "n"))[(row + column) % 2]
    problem = MatmulProblem("matmul", (33, 199, 41), "f32", layout, epilogue)
    rng = np.random.default_rng(0)
    kernel, inputs = callable_of(problem, threads, split), draw(problem, draw_base(problem, rng), rng)
    assert compare(inputs, kernel(*inputs.arrays))[0].max_error <= 1.0


@pytest.mark.mlir
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_a_result_of_bf16_is_rounded_once(epilogue: str) -> None:
    problem = Matmul(9, 37, 300, "bf16", epilogue=epilogue, output="bf16")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(ml_dtypes.bfloat16) for shape in ((9, 300), (300, 37)))
    bias = rng.integers(-99, 99, 37).astype(ml_dtypes.bfloat16)
    inputs = (a, b) if epilogue == "none" else (a, b, bias)
    sums = a.astype(np.float32) @ b.astype(np.float32)  # whole numbers: exact
    exact = sums if epilogue == "none" else np.maximum(sums + bias.astype(np.float32), 0)
    result = callable_of(problem)(*inputs)
    assert result.dtype == ml_dtypes.bfloat16
    assert np.array_equal(result, exact.astype(ml_dtypes.bfloat16))


@pytest.mark.mlir
def test_it_writes_into_out_and_returns_it(small: CpuCallable) -> None:
    out = np.empty((4, 64), np.float32)
    assert small(A, B, out=out) is out
    assert (out == 3.0).all()


@pytest.mark.mlir
def test_callers_in_several_threads_are_interleaved(small: CpuCallable) -> None:
    right: list[bool] = []

    def work(number: int) -> None:
        a = np.full((4, 3), number, np.float32)
        right.extend(bool((small(a, B) == 3.0 * number).all()) for _ in range(200))

    in_four_threads(work)
    assert right == [True] * 800


def is_right(kernel: CpuCallable) -> bool:
    return all((kernel(2 * A, B) == 6.0).all() for _ in range(3))


@pytest.mark.mlir
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # Python 3.12
@pytest.mark.parametrize("is_called_first", [True, False])
def test_a_kernel_with_threads_works_in_a_forked_process_and_in_its_parent(is_called_first: bool) -> None:
    kernel = callable_of(SMALL, 2, "n")
    if is_called_first:
        kernel(A, B)
    assert in_child(lambda: is_right(kernel))
    assert (kernel(A, B) == 3.0).all()


@pytest.mark.mlir
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_forked_amid_a_call_waits_for_nobody() -> None:
    threaded = callable_of(SMALL, 2, "n")
    team = present(threaded._call.team)  # noqa: SLF001
    with team.lock:  # as another thread of the parent holds it
        assert in_child(lambda: is_right(threaded) and in_child(lambda: is_right(threaded)))


@pytest.mark.mlir
def test_a_kernel_is_neither_pickled_nor_copied(small: CpuCallable) -> None:
    said = r"cannot be pickled or copied; load it in the other process: tuner\.load_best\(problem\)$"
    with pytest.raises(TypeError, match=f"^CpuCallable: a loaded kernel {said}"):
        pickle.dumps(small)


@pytest.mark.drawn(ALL)
@pytest.mark.mlir
@pytest.mark.parametrize(
    ("inputs", "out", "message"),
    [
        ((A,), None, r"^matmul 4x64x3 f32 nn none: found 1 arrays, allowed a, b$"),
        ((A, B, B), None, r": found 3 arrays, allowed a, b$"),
        ((A.tolist(), B), None, TO_CONVERT),
        ((A.T, B), None, TO_TRANSPOSE),
        ((A.astype(np.float64), B), None, r"^a: found float64 of shape \(4, 3\), allowed float32"),
        ((A, np.ones((64, 3), np.float32).T), None, TO_COPY),
        ((A, B), np.empty((64, 4), np.float32), r"^out: found float32 of shape \(64, 4\), allowed"),
        ((A, B), READ_ONLY, r"^out: is read-only, but is written to$"),
        ((np.ma.masked_array(A, mask=A > 0), B), None, MASKED),
        ((A, B), np.ma.masked_array(np.empty((4, 64), np.float32)), r"^out: masked arrays are not supported"),
        ((A, SHARED[:3]), SHARED, r"^out: is written to, but shares memory with b$"),
    ],
)
def test_arrays_that_do_not_fit_are_named(
    inputs: tuple[Array, ...], out: Array | None, message: str, small: CpuCallable
) -> None:
    with pytest.raises(UsageError, match=message):
        small(*inputs, out=out)
