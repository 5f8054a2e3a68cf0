"""``tuner.compile_program``: options, files, scripts, graphs, compilers that crash, forked processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.default_suite import ALL
from tests.forked import in_child, in_child_amid_calls
from tests.models.crashing_compiler import crash
from tests.models.lowering.compiled import first_script
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.matmul import Matmul
from tuner.gpu.run.device_function import DeviceFunction
from tuner.models import compile as compile_child
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction

PROBLEM, OTHER = Matmul(16, 16, 8), Matmul(8, 8, 8)
WITH_KEYS = "allowed a dictionary with keys such as"
TEXT = text_beside(__file__, "TEXT")
CRASHES = {"{segfault": "killed by SIGSEGV", "{abort": "killed by SIGABRT", "{hang": "timed out"}
RIGHT = "func.func @f(%a: memref<4xf32>) { return }"


def require_product(program: Any) -> tuple[Any, ...]:
    """Calls a program with A, B and C, which must become A B; returns them."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (8, 16), (16, 16)))
    program(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=0, atol=1e-5)
    return a, b, c


def test_a_script_does_its_matmul_on_the_host_too(tmp_path: Path) -> None:
    script = first_script(PROBLEM).text
    program = tuner.compile_program(TEXT, "simulator", scripts={PROBLEM: script})
    assert isinstance(program, DeviceFunction)
    assert "matmul_kernel_16x16x8_f32_nn" in program.program.llvm
    require_product(program)
    program.close()
    (tmp_path / "f.mlir").write_text(TEXT)
    require_product(tuner.compile_program(tmp_path / "f.mlir", "cpu"))


def test_ops_of_linalg_in_old_and_new_spelling_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((8, 12)).astype(np.float32) for _ in range(2))
    program = tuner.compile_program(text_beside(__file__, "SPELLED"), "cpu")
    found = program(x, y, np.zeros((8, 8), np.float32))
    for given, expected in zip(found, (x + y, np.exp(x), np.maximum(x, y), x - y, x, x @ y.T), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-5)


def test_a_missing_database_that_a_call_names_is_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    with pytest.raises(UsageError) as caught:
        tuner.compile_program(TEXT, "cpu", db=missing)
    assert caught.value.message == f"database sqlite:///{missing}: no such file"
    assert caught.value.hint == f"tuner tune matmul 512x512x512 --db {missing}"
    assert not missing.exists()


@pytest.mark.parametrize("name", ["missing.db", "no folder/missing.db", "sqlite:///{}/missing.db"])
def test_a_database_of_the_environment_may_come_later(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program runs untuned until then: `TUNER_DB` stands in a profile before anything is tuned."""
    named = name.format(tmp_path) if "://" in name else str(tmp_path / name)
    monkeypatch.setenv("TUNER_DB", named)
    require_product(tuner.compile_program(TEXT, "cpu"))
    assert list(tmp_path.iterdir()) == []


def test_page_locked_host_memory_gives_the_same_and_a_graph_reads_its_arguments_anew() -> None:
    options: dict[str, Any] = {"pinned": True, "order": "random", "seed": 3}
    program: Any = tuner.compile_program(TEXT, "simulator", **options)
    a, b, c = require_product(program)
    graph = program.as_graph(a, b, c)
    graph.launch()
    a *= 2
    graph.launch()
    np.testing.assert_allclose(c, a @ b, rtol=0, atol=1e-5)
    graph.close()
    program.close()
    assert program.device.reports == ()


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "async"}, "form: found 'async', allowed streams, tokens, sync"),
        ({"target": "cpu", "device_arguments": True}, "device_arguments cannot be combined with target cpu"),
        ({"target": "cpu", "pinned": True}, "pinned cannot be combined with target cpu, only with cuda, "),
        ({"target": "cpu", "form": "sync"}, "form sync cannot be combined with target cpu, only with cuda, "),
        ({"target": "cpu", "order": "lifo"}, "order lifo cannot be combined with target cpu, only with sim"),
        ({"seed": -1}, "seed: found -1, allowed 0 or more"),
        ({"target": "tpu"}, "target: found 'tpu'"),
        ({"order": "best"}, "order: found 'best', allowed fifo, lifo, random"),
        ({"scripts": {OTHER: ""}}, "scripts: found matmul 8x8x8 .*, allowed .*: matmul 16x16x8 f32"),
        ({"scripts": {"matmul": "text"}}, f"scripts: found {{'matmul': 'text'}}, {WITH_KEYS} tuner.Matmul"),
        ({"scripts": {PROBLEM: 5}}, f"scripts: found .*: 5}}, {WITH_KEYS}"),
        ({"payload": " "}, "payload: is empty; it must be MLIR or the path of a file"),
        ({"payload": "none.mlir"}, r"none\.mlir: cannot be read \(No such file"),
        ({"payload": "func.func @f() {"}, r"payload:1:15: expected operation name"),
        ({"entry": "g"}, "payload: entry: found 'g', allowed f"),
    ],
)
def test_words_that_are_wrong_are_reported(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tuner.compile_program(**{"payload": TEXT, "target": "simulator"} | options)


@pytest.mark.parametrize("target", ["simulator", "cpu"])
def test_what_does_not_lower_is_the_candidates_failure(target: str) -> None:
    with pytest.raises(CandidateError, match=r"2:3: linalg\.softmax: found memref<4x8xf32>, allowed tensors"):
        tuner.compile_program(text_beside(__file__, "SOFTMAX"), target)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("payload", "reason"), CRASHES.items())
def test_a_crash_or_hang_is_an_error(payload: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_child, "compile_and_check", crash)
    monkeypatch.setattr(compile_child, "TIMEOUT_S", 1.0)

    def compile_twice() -> None:
        for _ in range(2):  # the second finds the thread's child gone
            with pytest.raises(CandidateError, match=f"payload: compiler: .*{reason}") as caught:
                tuner.compile_program(payload, "simulator")
            assert caught.value.stage is Stage.COMPILE

    with ThreadPoolExecutor(1) as fresh:  # a thread that has no child yet
        fresh.submit(compile_twice).result()


def test_programs_of_a_thread_share_a_child() -> None:
    tuner.compile_program(RIGHT, "simulator").close()
    child = compile_child.CHILDREN.of_this_thread().first.child
    tuner.compile_program(RIGHT, "cpu").close()
    assert compile_child.CHILDREN.of_this_thread().first.child is child is not None


@pytest.mark.slow
def test_a_forked_process_compiles_with_a_child_of_its_own() -> None:
    def compiles() -> bool:
        tuner.compile_program(RIGHT, "simulator").close()
        return True

    assert compiles()
    child = compile_child.CHILDREN.of_this_thread().first.child
    assert in_child(compiles)
    assert compiles()
    assert compile_child.CHILDREN.of_this_thread().first.child is child is not None


def square(n: int, more: str = "") -> str:
    return text_beside(__file__, "SQUARE").replace("SIZE", str(n)).replace("MORE", more)


def right_in_child(function: Any, n: int, *more: int) -> bool:
    x = np.eye(n, dtype=np.float32) * 3
    assert np.array_equal(function(x, *more), x * 3)
    return in_child_amid_calls(lambda: np.array_equal(function(-x, *more), x * 3))


def test_programs_of_fusions_as_a_whole_on_the_simulator_and_of_arrays() -> None:
    for n, threads in ((16, 1), (256, 2)):
        fused = tuner.compile_program(square(n), target="cpu", threads=threads)
        assert isinstance(fused, FusedFunction)
        assert fused.code.threads == threads
        assert right_in_child(fused, n)
        assert right_in_child(fused, n)
    text = square(4, ", %unused: index")
    function: Any = tuner.compile_program(text, target="cpu")
    assert isinstance(function, HostFunction)
    assert right_in_child(function, 4, 1)
    assert right_in_child(tuner.compile_program(text, target="simulator"), 4, 1)
    assert right_in_child(lambda x: tuner.matmul(x, x, measure="never"), 24)
