"""A process that is forked while other threads call can call as well: programs of all kinds, tuner.matmul."""

from typing import Any

import numpy as np
import pytest

import tuner
from tests.forked import in_child_amid_calls
from tests.texts import text_beside
from tuner.programs.run.fused_program import FusedFunction
from tuner.programs.run.host_function import HostFunction

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]


def square(n: int, more: str = "") -> str:
    return text_beside(__file__, "SQUARE").replace("SIZE", str(n)).replace("MORE", more)


def right_in_child(function: Any, n: int, *more: int) -> bool:
    x = np.eye(n, dtype=np.float32) * 3
    assert np.array_equal(function(x, *more), x * 3)
    return in_child_amid_calls(lambda: np.array_equal(function(-x, *more), x * 3))


def test_programs_of_fusions_on_one_thread_and_several() -> None:
    for n, threads in ((16, 1), (256, 2)):
        function = tuner.compile_program(square(n), target="cpu", threads=threads)
        assert isinstance(function, FusedFunction)
        assert function.code.threads == threads
        assert right_in_child(function, n)
        assert right_in_child(function, n)


def test_programs_as_a_whole_on_the_host_and_on_the_simulator() -> None:
    text = square(4, ", %unused: index")
    function: Any = tuner.compile_program(text, target="cpu")
    assert isinstance(function, HostFunction)
    assert right_in_child(function, 4, 1)
    assert right_in_child(tuner.compile_program(text, target="simulator"), 4, 1)


def test_products_of_arrays() -> None:
    assert right_in_child(lambda x: tuner.matmul(x, x, measure="never"), 24)
