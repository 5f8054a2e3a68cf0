import pytest

from tests.programs.lower.reading import EXP, T, read, refusal
from tuner.core.errors import Stage

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lower.read_program")


def test_calls_are_inlined_and_only_the_entry_is_left() -> None:
    caller = f"func.func @twice(%x: {T}) -> {T} {{ %y = call @exp(%x) : ({T}) -> {T} return %y : {T} }}"
    text = read(EXP + caller, "twice")
    assert text.count("func.func") == 1
    assert "linalg.exp" in text


def test_text_that_is_no_mlir_is_refused_in_one_line() -> None:
    stage, reason = refusal("def f(): pass")
    assert stage is Stage.BIND
    assert "\n" not in reason


def test_an_op_that_is_not_known_is_refused() -> None:
    unknown = f'func.func @f(%x: {T}) -> {T} {{ %y = "own.op"(%x) : ({T}) -> {T} return %y : {T} }}'
    stage, reason = refusal(unknown)
    assert stage is Stage.BIND
    assert "unregistered dialect" in reason


def test_gpux_is_read_as_documents_print_it() -> None:
    text = """
    func.func @main() {
      %s = gpux.create_stream () : () -> !gpux.StreamType
      %0 = gpux.alloc (%s) : (!gpux.StreamType) -> memref<8xf32>
      gpux.dealloc(%s, %0) : (!gpux.StreamType, memref<8xf32>) -> ()
      gpux.stream.destroy(%s) : (!gpux.StreamType) -> ()
      return
    }"""
    assert read(text).count('"gpux.') == 4


def test_an_unknown_dialect_is_named_in_one_line_without_all_the_others() -> None:
    stage, reason = refusal("func.func @f() {\n  foo.bar\n  return\n}")
    assert stage is Stage.BIND
    assert reason == (
        "payload: error: line 2:3: found foo.bar of dialect foo, allowed dialects that MLIR or GPUX has"
    )
