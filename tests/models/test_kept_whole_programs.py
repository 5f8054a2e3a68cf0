"""Programs that are compiled as a whole are compiled once, and kept for other processes with their code."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError, UsageError
from tuner.mlir.ir.resources import without_data
from tuner.models import compile as module
from tuner.models import compiler
from tuner.models.execution import host_function
from tuner.models.run.host_function import HostFunction
from tuner.runtime.compiled_files import compiled_files

pytestmark = pytest.mark.mlir
X = np.arange(4, dtype=np.float32)
PRINTED = text_beside(__file__, "PRINTED")
WRITTEN = text_beside(__file__, "WRITTEN")


def steps(weight: float) -> str:
    data = np.full(4, weight, np.float32).tobytes().hex().upper()
    return text_beside(__file__, "STEPS").replace("DATA", data)


def written(start: float) -> str:
    return WRITTEN.replace("DATA", np.full(4, start, np.float32).tobytes().hex())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the folder of compiled files, empty at first; programs are compiled in this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "call_in_kept_child", lambda work, *_: work())
    return compiled_files().folder


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gives the list of the payloads that were compiled, not only loaded."""
    texts: list[str] = []
    in_child = module._compiled_in_child  # noqa: SLF001 - what the files are there to avoid

    def counted(request: Any, payload: Any, observe: Any) -> Any:
        texts.append(payload.joined)
        return in_child(request, payload, observe)

    monkeypatch.setattr(module, "_compiled_in_child", counted)
    return texts


def program(text: str) -> Any:
    function = module.compile_program(text, target="cpu")
    assert isinstance(function, HostFunction)
    return function


def test_a_program_as_a_whole_is_compiled_once_for_each_text_whatever_its_constants(
    compiled: list[str],
) -> None:
    functions = [program(steps(weight)) for weight in (2.0, 3.0, 2.0)]
    for function, weight in zip(functions, (2.0, 3.0, 2.0), strict=True):
        np.testing.assert_array_equal(function(X, 3), X + 3 * weight)
        assert function.why_no_fusions == "argument 1: index is not a tensor"
    assert compiled == [steps(2.0)]
    program(steps(2.0).replace("addf", "subf"))
    assert len(compiled) == 2


def test_kept_code_without_data_of_its_constants_is_refused() -> None:
    program(steps(2.0))
    with pytest.raises(UsageError, match="dense_resource<weight> has no data after the module"):
        program(without_data(steps(2.0)))


def test_each_function_has_its_own_copy_of_a_global_that_it_writes(compiled: list[str]) -> None:
    for weight in (2.0, 3.0, 2.0):
        functions = [program(written(weight)) for _ in range(2)]
        for calls in (1, 2):
            for function in functions:
                np.testing.assert_array_equal(function(X), weight + calls * X)
    assert len(compiled) == 1


@pytest.mark.parametrize(("text", "more"), [("WRITTEN", ()), ("STEPS", (1,))])
def test_a_device_keeps_data_from_call_to_call_that_its_code_does_not_have(
    text: str, more: tuple[int, ...]
) -> None:
    payload = written(2.5) if text == "WRITTEN" else steps(2.5)
    function: Any = module.compile_program(payload, target="simulator")
    assert np.full(4, 2.5, np.float32).tobytes().hex().upper() not in function.program.llvm
    (buffer,) = function.program.resident
    assert buffer.is_written == (text == "WRITTEN")
    for calls in (1, 2):
        added = calls if text == "WRITTEN" else 1
        np.testing.assert_array_equal(function(X, *more), 2.5 + added * X)
    function.close()


def test_kept_code_prints_asserts_and_calls_the_c_library(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []
    monkeypatch.setattr(module, "host_function", partial(host_function, write=printed.append))
    for _ in range(2):
        function = program(PRINTED)
        expected = [math.tan(math.erf(x)) for x in X]
        np.testing.assert_allclose(function(X, 2), expected, rtol=1e-6)
        with pytest.raises(CandidateError, match="n is at most 3"):
            function(X, 4)
        np.testing.assert_allclose(function(X, 1), expected, rtol=1e-6)
    assert "".join(printed) == "2\n1\n" * 2
    assert len(compiled) == 1


def test_a_damaged_file_and_a_program_above_the_limit_are_compiled_again(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(steps(2.0))
    for each in folder.iterdir():
        each.write_bytes(each.read_bytes()[:-1] + b"?")
    monkeypatch.setattr(compiler, "WHOLE_LIMIT_BYTES", 100)
    for number in range(2, 4):
        np.testing.assert_array_equal(program(steps(2.0))(X, 1), X + 2)
        assert len(compiled) == number
