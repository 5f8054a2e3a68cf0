import pickle
from typing import Any

import numpy as np
import pytest

from tests.programs.lowering.compiled import host_function
from tests.programs.run.test_marshalling import Tensor
from tests.texts import text_beside
from tuner.core.errors import UsageError

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.run.host_function")

ROW = "memref<3xf32>"
SWAP = text_beside(__file__, "SWAP")


def test_buffers_and_numbers_go_in_and_come_out() -> None:
    function = host_function(SWAP)
    a = np.arange(5, dtype=np.float32)
    new, old, size = function(a, 9.0, 3)
    np.testing.assert_array_equal(new, [0, 1, 2, 9, 4])
    np.testing.assert_array_equal(a, np.arange(5))
    assert (old, size) == (3.0, 5)
    assert function.allocations == 0


def test_one_result_is_no_tuple_and_none_is_none() -> None:
    assert host_function("func.func @f(%x: f32) -> f32 { return %x : f32 }")(2.5) == 2.5
    store = f"%c0 = arith.constant 0 : index memref.store %x, %a[%c0] : {ROW}"
    assert (
        host_function(f"func.func @f(%a: {ROW}, %x: f32) {{ {store} return }}")(np.zeros(3, np.float32), 1.0)
        is None
    )


def test_a_program_is_not_pickled() -> None:
    function = host_function("func.func @f(%x: f32) -> f32 { return %x : f32 }")
    with pytest.raises(TypeError, match=r"other process: tuner\.compile_program\(payload\)$"):
        pickle.dumps(function)


def test_a_returned_buffer_twice_is_freed_once() -> None:
    function = host_function(text_beside(__file__, "TWICE"))
    one, other = function(1.0)
    assert one.all()
    assert other.all()
    assert function.allocations == 0


def test_repeated_calls_leave_nothing_behind() -> None:
    function = host_function(SWAP)
    call = function.prepare(np.zeros(1000, np.float32), 1.0, 0)
    function.repeat(call, 50)
    assert function.allocations == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 2), "swap: found 2 arguments, allowed 3"),
        ((np.zeros((2, 2), np.float32), 1.0, 0), "swap: argument 0: found float32 of shape 2x2, allowed"),
        (
            (np.zeros(4, np.float32), 1.0, 0.5),
            r"swap: argument 2: found 0\.5, allowed a number of type index",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        host_function(SWAP)(*arguments)


def test_a_read_only_array_that_would_be_written_is_refused() -> None:
    store = f"%c0 = arith.constant 0 : index memref.store %x, %a[%c0] : {ROW}"
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(UsageError, match="f: argument 0: is read-only, but is written to"):
        host_function(f"func.func @f(%a: {ROW}, %x: f32) {{ {store} return }}")(frozen, 1.0)


def test_streams_and_graphs_are_of_gpus() -> None:
    function = host_function("func.func @f() { return }")
    assert function(stream=None) is None
    with pytest.raises(UsageError, match="f: takes no stream: the program runs on the host"):
        function(stream=7)
    with pytest.raises(
        UsageError, match="f: the program runs on the host: only a program on a GPU has a graph"
    ):
        function.as_graph()
    function.close()
    assert function() is None


STORE = text_beside(__file__, "STORE")


def test_a_tensor_of_another_package_is_written_in_place() -> None:
    a, b = np.zeros(3, np.float32), np.zeros(3, np.float32)
    host_function(STORE)(Tensor(a), Tensor(b), 5.0)
    assert a.tolist() == [5, 0, 0]


def test_a_written_argument_shares_no_memory_with_another() -> None:
    a = np.zeros(3, np.float32)
    with pytest.raises(UsageError, match="f: argument 0, which is written, shares memory with argument 1"):
        host_function(STORE)(a, a, 5.0)
