"""Host functions interpreted as written give what their compiled code gives, and say where they cannot."""

from typing import Any

import numpy as np
import pytest

from tests.support.program_compiler import compiler_of
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, Stage
from tuner.gpu.interpreter import host_functions
from tuner.gpu.interpreter.host_functions import NotInterpretedError, read_function
from tuner.models.comparison import compare, outputs
from tuner.models.execution import copies
from tuner.models.run.host_function import HostFunction

pytestmark = pytest.mark.mlir


def interpreted(name: str, *arguments: Any) -> tuple[Any, ...]:
    return read_function(text_beside(__file__, name), "main")(arguments, lambda _: None)


def drawn(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def whole(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(1).integers(0, 100, shape).astype(np.int32)


CASES = {
    "TENSORS": [*drawn((4, 6), (6, 4)), 2],
    "STRUCTURED": [*drawn((1, 6, 6, 2), (3, 3, 2, 3)), whole((4, 6)), *drawn((9,))],
    "CONTROL": [*drawn((8, 4)), 3],
    "VECTORS": [*drawn((4, 8), (4, 8)), 5],
    "KERNELS": [*drawn((64,), (64,)), 0.5],
}


@pytest.mark.parametrize("name", CASES)
def test_a_program_as_written_gives_what_its_loops_give(name: str) -> None:
    text, arguments = text_beside(__file__, name), tuple(CASES[name])
    compiled = compiler_of(TargetName("cpu")).compile(text, "main", None, is_checked=True).code
    own, others = copies(arguments), copies(arguments)
    texts: tuple[list[str], list[str]] = ([], [])
    expected = outputs(compiled, HostFunction(compiled, texts[0].append)(*own), own)
    results = read_function(text, "main")(others, texts[1].append)
    found = outputs(compiled, results[0] if len(results) == 1 else results, others)
    comparisons = compare(compiled, found, expected)
    assert comparisons
    assert all(one.is_equal for one in comparisons), comparisons
    assert "".join(texts[0]) == "".join(texts[1])


def test_arguments_that_are_tensors_stay_and_memrefs_change() -> None:
    tensor, memref = drawn((4, 8), (4, 8))
    before = tensor.copy(), memref.copy()
    interpreted("VECTORS", tensor, memref, 5)
    np.testing.assert_array_equal(tensor, before[0])
    assert not np.array_equal(memref, before[1])


def test_a_program_with_more_work_than_allowed_is_not_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_functions, "OPERATIONS_LIMIT", 1000)
    assert interpreted("ENDLESS", 100)[0] == 99 * 100 // 2
    with pytest.raises(NotInterpretedError, match="it executes more than 1,000 operations"):
        interpreted("ENDLESS", 10**9)


def test_constants_whose_data_follow_the_module_are_read() -> None:
    (found,) = interpreted("RESOURCES", np.zeros((2, 2), np.float32))
    np.testing.assert_array_equal(found, [[1, 2], [3, -4]])


def test_an_unknown_operation_is_not_interpreted_and_named() -> None:
    text = "func.func @main(%z: complex<f32>) -> f32 { %r = complex.re %z : complex<f32> return %r : f32 }"
    with pytest.raises(NotInterpretedError, match=r"complex\.re"):
        read_function(text, "main")


def test_what_the_text_leaves_undefined_is_a_fault_that_names_the_operation() -> None:
    (tensor,) = drawn((4,))
    assert interpreted("OUTSIDE", tensor, 3)[0] == tensor[3]
    message = r"^tensor\.extract at .*: found index 4 of dimension 0, allowed 0 to 3$"
    with pytest.raises(CandidateError, match=message) as caught:
        interpreted("OUTSIDE", tensor, 4)
    assert caught.value.stage is Stage.RUN
