"""Programs on several threads give what they give on one, bit for bit, whoever calls them and how often."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.programs.fusions.payload_text import with_weights
from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.programs import fusion_compiler
from tuner.programs.fusion_compiler import compile_fusions
from tuner.programs.fusions import formation
from tuner.programs.fusions.payload import NotFused
from tuner.programs.run.fused_program import FusedFunction
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir


def program(name: str, **sizes: int) -> str:
    """Returns a program of sizes whose names stand in its text; its weights are many different numbers."""
    text = text_beside(__file__, "MAPS") + text_beside(__file__, name.upper())
    for size, number in sizes.items():
        text = text.replace(size.upper(), str(number))
    return with_weights(text)


PROGRAMS = {
    "contraction": program("contraction", rows=29, inner=40, columns=70),
    "contraction of whole tiles": program("contraction", rows=12, inner=32, columns=128),
    "contraction of one row": program("contraction", rows=1, inner=32, columns=300),
    **{
        name: program(name)
        for name in ("pair", "batch_matmul", "attention", "rows", "elementwise", "convolution", "loops")
    },
}


@pytest.fixture(autouse=True)
def every_fusion_is_divided_and_every_attention_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_compiler, "LEAST_S", 0.0)
    monkeypatch.setattr(formation, "LEAST_KEYS", 1)
    monkeypatch.setattr(formation, "LEAST_SCORES", 1)


@cache
def compiled(name: str, threads: int) -> FusedFunction:
    found = compile_fusions(PROGRAMS[name], None, describe_machine(), threads=threads)
    assert not isinstance(found, NotFused), found
    return FusedFunction(found.code, found.weights)


def inputs_of(function: FusedFunction, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(each.shape).astype(np.float32) for each in function.code.arguments]


def results(function: Any, inputs: list[np.ndarray]) -> list[bytes]:
    found = function(*inputs)
    return [each.tobytes() for each in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_kind_of_fusion_gives_the_bits_of_one_thread(name: str, threads: int) -> None:
    alone, together = compiled(name, 1), compiled(name, threads)
    inputs = inputs_of(alone)
    expected = results(alone, inputs)
    assert together.code.threads == threads
    assert not name.startswith("attention") or [each.strategy for each in alone.code.fusions] == [
        "attention_cpu"
    ]
    assert any(each.is_divided for each in together.code.fusions)
    for _ in range(10):
        assert results(together, inputs) == expected


def test_two_threads_of_python_may_call_programs_at_once() -> None:
    """The same program and another one, from two threads: calls wait for each other."""
    functions = [compiled(name, 2) for name in ("rows", "contraction", "rows")]
    inputs = [inputs_of(each, at) for at, each in enumerate(functions)]
    expected = [results(*each) for each in zip(functions, inputs, strict=True)]

    def is_right(at: int) -> bool:
        return all(results(functions[at], inputs[at]) == expected[at] for _ in range(50))

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(is_right, range(3)))


def test_a_forked_process_calls_the_program() -> None:
    function = compiled("contraction", 2)
    inputs = inputs_of(function)
    expected = results(function, inputs)
    child = os.fork()
    if not child:
        os._exit(0 if results(function, inputs) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert results(function, inputs) == expected


IN_A_FRESH_PROCESS = """
import sys
import numpy as np
import tuner
program = tuner.load(sys.argv[1], **({"threads": int(sys.argv[3])} if len(sys.argv) > 3 else {}))
np.save(sys.argv[2], program(np.load(sys.argv[2])))
print(program.code.threads, "numba_cuda_mlir" in sys.modules)
"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("given", "threads"), [((), 3), (("2",), 2), (("1",), 1)])
def test_an_exported_program_runs_on_its_threads_without_a_compiler_and_the_process_ends(
    tmp_path: Path, given: tuple[str, ...], threads: int
) -> None:
    function = compiled("contraction", 3)
    (inputs,) = inputs_of(function)
    function.export(tmp_path / "program")
    np.save(tmp_path / "x.npy", inputs)
    command: list[str | Path] = [sys.executable, "-c", IN_A_FRESH_PROCESS]
    command += [tmp_path / "program", tmp_path / "x.npy", *given]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{threads} False\n", "", 0)
    assert results(function, [inputs]) == [np.load(tmp_path / "x.npy").tobytes()]


def test_a_program_of_one_thread_is_loaded_for_one(tmp_path: Path) -> None:
    compiled("rows", 1).export(tmp_path / "one")
    with pytest.raises(UsageError, match=r"^threads: found 2, allowed 1; compile the program with threads=2"):
        tuner.load(tmp_path / "one", threads=2)
    compiled("rows", 2).export(tmp_path / "two")
    with pytest.raises(UsageError, match=r"^threads: found 0, allowed 1 to 256$"):
        tuner.load(tmp_path / "two", threads=0)


def test_fusions_of_little_work_are_left_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion_compiler, "LEAST_S", 15e-6)
    found = compile_fusions(PROGRAMS["rows"], None, describe_machine(), threads=2)
    assert not isinstance(found, NotFused)
    assert (found.code.threads, [each.is_divided for each in found.code.fusions]) == (1, [False])
    assert b"program_part" not in found.code.object_code


@pytest.mark.parametrize("threads", [0, 257])
def test_other_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(UsageError, match=rf"^threads: found {threads!r}, allowed 1 to 256$"):
        tuner.compile_program(PROGRAMS["rows"], target="cpu", threads=threads)
    with pytest.raises(UsageError, match="threads 2 cannot be combined with target simulator"):
        tuner.compile_program(PROGRAMS["rows"], target="simulator", threads=2)
