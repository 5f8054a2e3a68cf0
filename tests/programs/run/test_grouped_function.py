"""A program of fusions is called: fast on arrays that fit, clear on others, safe with several threads."""

import pickle
import threading
from typing import Any

import numpy as np
import pytest

from tests.programs.fusions.compiled import compiled_code, compiled_function
from tests.programs.run.test_marshalling import Tensor
from tuner.core.errors import UsageError
from tuner.programs.run import fused_program
from tuner.programs.run.fused_program import FusedFunction

pytestmark = pytest.mark.mlir

WEIGHT = np.linspace(-1, 1, 8).astype(np.float32)
X, Y = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)


@pytest.fixture
def function() -> FusedFunction:
    return compiled_function(WEIGHT)


def expected(x: Any, y: Any) -> Any:
    return np.exp(np.asarray(x) * WEIGHT + np.asarray(y))


def test_results_are_right_and_not_those_of_the_next_call(function: FusedFunction) -> None:
    first, thrice = function(X, Y)
    again, _ = function(Y, X)
    np.testing.assert_allclose(first, expected(X, Y), rtol=1e-6)
    np.testing.assert_allclose(thrice, 3 * expected(X, Y), rtol=1e-6)
    np.testing.assert_allclose(again, expected(Y, X), rtol=1e-6)


def test_memory_of_dropped_results_is_used_again(function: FusedFunction) -> None:
    addresses = {function(X, Y)[0].ctypes.data for _ in range(5)}
    assert len(addresses) == 1


def test_other_arrays_of_host_memory_are_taken(function: FusedFunction) -> None:
    read_only = X.copy()
    read_only.flags.writeable = False
    with_unit = np.ones((1, 8), np.float32)[0]
    for x in (Tensor(X), read_only, with_unit, X.view(np.memmap)):
        found = function(x, Y)[0]
        np.testing.assert_allclose(found, expected(x.array if isinstance(x, Tensor) else x, Y), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X,), "main: found 1 arguments, allowed 2"),
        ((X, Y, X), "main: found 3 arguments, allowed 2"),
        ((X, Y[:4]), "main: argument 1: found float32 of shape 4, allowed float32 of shape 8"),
        ((X.astype(float), Y), r"argument 0: found float64 of shape 8.*convert it: .astype\('float32'\)"),
        (
            (np.zeros(16, np.float32)[::2], Y),
            r"argument 0: found strides \(8,\), allowed a C-contiguous array",
        ),
        ((X, 3.0), "argument 1: found float, allowed a numpy array"),
        ((X, np.ma.masked_array(Y)), "argument 1: masked arrays are not supported"),
    ],
)
def test_what_does_not_fit_is_named(
    function: FusedFunction, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        function(*arguments)
    np.testing.assert_allclose(function(X, Y)[0], expected(X, Y), rtol=1e-6)  # it can still be called


def test_it_takes_no_stream_and_has_no_graph(function: FusedFunction) -> None:
    with pytest.raises(UsageError, match="main: takes no stream: the program runs on the host"):
        function(X, Y, stream=0)
    with pytest.raises(UsageError, match="only a program on a GPU has a graph"):
        function.as_graph(X, Y)


def test_threads_wait_for_one_another(function: FusedFunction) -> None:
    wrong = []

    def call(seed: int) -> None:
        x, y = np.random.default_rng(seed).standard_normal((2, 8)).astype(np.float32)
        for _ in range(200):
            found = function(x, y)[0]
            if not np.allclose(found, expected(x, y), rtol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_a_prepared_call_is_repeated_whole_and_fusion_by_fusion(function: FusedFunction) -> None:
    call = function.prepare(X, Y)
    function.repeat(call, 3)
    function.repeat_fusion(call, 0, 3)
    assert function.allocations == 0
    with pytest.raises(IndexError, match="fusion 5: found no such fusion, allowed 0 to 4"):
        function.repeat_fusion(call, 5, 1)


def test_a_single_fusion_runs_alone(function: FusedFunction) -> None:
    function(X, Y)
    call = function.prepare(np.zeros(8, np.float32), Y)
    for number in (0, 1, 2):
        function.repeat_fusion(call, number, 1)
    results = function.run([each.ctypes.data for each in call.arrays])
    np.testing.assert_allclose(results[0], np.exp(Y), rtol=1e-6)


def test_addresses_are_those_that_numpy_says() -> None:
    for array in (X, X[2:], np.zeros(()), np.zeros((0, 3))):
        assert fused_program.address_of(array) == array.ctypes.data


def test_a_program_is_not_pickled(function: FusedFunction) -> None:
    with pytest.raises(TypeError, match=r"load it in the other process: tuner\.compile_program"):
        pickle.dumps(function)
    assert pickle.loads(pickle.dumps(compiled_code())) == compiled_code()
