"""A failed assertion is the result of a function: its text; memory is freed on every way out."""

import ctypes

import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir.cpu.failed_assertions import leave_at_failed_assertions, return_failed_assertions
from tuner.mlir.passes import run_passes
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments

TO_LLVM = "builtin.module(convert-scf-to-cf,finalize-memref-to-llvm,convert-func-to-llvm,convert-to-llvm)"
WITH_MEMORY = text_beside(__file__, "WITH_MEMORY")
IN_LOOP = text_beside(__file__, "IN_LOOP")
IN_ANOTHER = text_beside(__file__, "IN_ANOTHER")


def rewritten(text: str) -> str:
    """Returns LLVM dialect of a module whose function ``group`` returns what failed."""
    with parsed(text) as module:
        run_passes(module, TO_LLVM)
        assert return_failed_assertions(module, "group")
        return str(module)


def test_the_first_text_is_returned_and_memory_is_freed() -> None:
    text = rewritten(WITH_MEMORY)
    assert "abort" not in text
    assert "puts" not in text
    assert text.count("call @free(") == text.count("llvm.return") == 3
    code = JittedModule(text.replace("llvm.func @group(%arg0: i64) -> !llvm.ptr {", EXPORTED), ("group",))
    found = {}
    for number in (-1, 0, 8, 9):
        arguments = PackedArguments(number % 2**64)
        CompiledFunction(code.addresses["group"])(arguments)
        found[number] = ctypes.string_at(arguments.result) if arguments.result else b""
    assert found == {-1: b"too small", 0: b"", 8: b"", 9: b"too large"}


EXPORTED = "llvm.func @group(%arg0: i64) -> !llvm.ptr attributes {llvm.emit_c_interface} {"


def test_code_without_assertions_stays_as_it_is() -> None:
    with parsed("llvm.func @group() {\n  llvm.return\n}") as module:
        before = str(module)
        assert not return_failed_assertions(module, "group")
        assert str(module) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (IN_LOOP, "an assertion next to memory that is allocated in a loop"),
        (IN_ANOTHER, "an assertion in a function that a fusion calls"),
    ],
)
def test_what_cannot_return_is_refused(text: str, message: str) -> None:
    with pytest.raises(CandidateError, match=message) as error:
        rewritten(text)
    assert error.value.stage is Stage.COMPILE


@pytest.mark.parametrize(("text", "aborts"), [(WITH_MEMORY, False), (IN_LOOP, False), (IN_ANOTHER, True)])
def test_a_whole_program_leaves_at_the_assertions_of_its_entry(text: str, *, aborts: bool) -> None:
    with parsed(text) as module:
        run_passes(module, TO_LLVM)
        leave_at_failed_assertions(module, "group")
        assert module.operation.verify()
        assert ("@abort" in str(module)) is aborts
        assert "@puts" in str(module)
