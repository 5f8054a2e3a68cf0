import pytest

from tests.programs.lower.reading import EXP, entry_read, refusal
from tuner.core.errors import Stage

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lower.entry")


def test_the_only_public_function_is_the_entry() -> None:
    private = "func.func private @h(%x: memref<4xf32>) { return }"
    assert entry_read(f"{private} func.func @f(%x: memref<4xf32>) {{ return }}") == "f"


def test_two_public_functions_need_a_word() -> None:
    both = "func.func @f() { return } func.func @g() { return }"
    assert refusal(both) == (
        Stage.BIND,
        "payload: public functions: found f, g, allowed one, or one that is named as the entry or main",
    )
    assert entry_read(both, "g") == "g"


def test_main_is_the_entry_beside_other_public_functions() -> None:
    both = "func.func @f() { return } func.func @main() { return }"
    assert entry_read(both) == "main"
    assert entry_read(both, "f") == "f"


def test_an_entry_that_is_not_there_is_refused() -> None:
    assert refusal(EXP, "matmul") == (Stage.BIND, "payload: entry: found 'matmul', allowed exp")


def test_a_payload_without_functions_is_refused() -> None:
    assert refusal("")[1].startswith("payload: public functions: found none")
