import pytest

from tests.programs.lowering.compiled import host_function, module_text
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.gpu_code import BufferType, ScalarType

pytestmark = pytest.mark.mlir

signature = pytest.importorskip("tuner.programs.lowering.entry")


def test_buffers_and_numbers_are_distinguished() -> None:
    program = host_function(text_beside(__file__, "KINDS")).program
    assert program.arguments == (BufferType("bf16", (2, None)), ScalarType("index"), ScalarType("f64"))
    assert program.results == (BufferType("i8", (None, 4)), ScalarType("i1"))


def test_arguments_that_are_only_read_are_not_written() -> None:
    assert host_function(text_beside(__file__, "WRITTEN")).program.written == (False, True, True, False)


def test_a_type_without_a_meaning_in_python_is_refused() -> None:
    text = "func.func @f(%a: vector<4xf32>) { return }"
    with pytest.raises(CandidateError, match="payload: argument: found vector<4xf32>, allowed memrefs"):
        module_text(text, lambda payload: signature.arguments_of(payload.function))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("strided<[8, 1]>", "allowed rows that lie without gaps"),
        ("strided<[4, 1], offset: 2>", "an offset of 0"),
    ],
)
def test_a_layout_that_no_contiguous_array_has_is_refused(layout: str, message: str) -> None:
    text = f"func.func @f(%a: memref<4x4xf32, {layout}>) {{ return }}"
    with pytest.raises(CandidateError, match=message):
        module_text(text, lambda payload: signature.arguments_of(payload.function))


@pytest.mark.parametrize(
    "kind", ["4x4xf32, strided<[4, 1]>", "4x4xf32, strided<[?, ?], offset: ?>", "?x4xf32"]
)
def test_a_layout_that_a_contiguous_array_has_is_taken(kind: str) -> None:
    text = f"func.func @f(%a: memref<{kind}>) {{ return }}"
    module_text(text, lambda payload: signature.arguments_of(payload.function))
