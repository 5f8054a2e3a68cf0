import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.mlir import transform

pytestmark = pytest.mark.mlir


OLD = text_beside(__file__, "OLD")


def test_what_documents_show_parses_and_no_line_moves() -> None:
    text = transform.with_current_spellings(OLD.replace(', op = "mul"', ""))
    assert text.count("\n") == OLD.count("\n")
    with parsed(OLD.replace('{op = "mul"}', "")) as module:
        printed = str(module).replace("  ", " ")
    for expected in ("gpu.block_dim x", "gpu.thread_id y", "gpu.all_reduce add", "gpu.shuffle xor"):
        assert expected in printed
    assert "gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>" in printed


def test_words_outside_of_these_ops_stay() -> None:
    for text in (
        'func.func @f() attributes {mode = "xor", op = "add", dimension = "x"} { return }',
        '"gpu.terminator"() {name = "gpu.module_ending"} : () -> ()',
    ):
        assert transform.with_current_spellings(text) == text


def test_the_after_of_the_docstring_is_what_becomes_of_the_before() -> None:
    lines = [line for line in (transform.__doc__ or "").splitlines() if line.startswith("    ")]
    half = len(lines) // 2
    assert transform.with_current_spellings("\n".join(lines[:half])) == "\n".join(lines[half:])
