"""Ops of a script are steps of the process while it is applied; the script is as before then."""

from collections.abc import Iterator

import pytest

from tests.texts import text_beside
from tuner.core import progress
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import compile_spec
from tuner.runtime.workers.worker import Worker

MATMUL = text_beside(__file__, "MATMUL")


@pytest.fixture(scope="module")
def compiling() -> Iterator[Worker]:
    worker = Worker(compile_spec(Factory("tuner.targets.cpu.compiler:CpuCompiler")), 4 << 30)
    yield worker
    worker.kill()


def failure(worker: Worker, script: str) -> Failure:
    work = Script.of(text_beside(__file__, script))
    reply = worker.ask("compile", Matmul(8, 8, 8), work, stage=Stage.COMPILE, timeout_s=60)
    assert isinstance(reply.value, Failure)
    return reply.value


def test_each_op_is_a_step_but_those_of_matchers(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr(progress, "_reader", steps.append)
    with transform.new_context(), ir.Location.unknown():
        payload = transform.parse(MATMUL, "payload")
        script = transform.parse(text_beside(__file__, "NESTED"), "script")
        before = str(script)
        transform.apply_script(payload, script)
        assert str(script) == before
        assert "scf.for" in str(payload)
    assert [name.partition(" at ")[0] for name in steps] == [
        "the transform interpreter",
        "transform.structured.match",
        "transform.foreach",
        "transform.apply_patterns",
        "transform.foreach_match",
        "transform.structured.tile_using_for",
        "transform.structured.match",
        'transform.apply_registered_pass "cse"',
        "",
    ]
    assert steps[5] == "transform.structured.tile_using_for at script:7:14"


def test_a_script_at_which_the_compiler_crashes_says_at_which_op(compiling: Worker) -> None:
    op = "transform.structured.tile_using_forall at script:4:14"
    found = failure(compiling, "CRASHES")
    assert (found.stage, found.reason) == (Stage.COMPILE, f"killed by SIGSEGV in {op}")


def test_scalable_vectors_are_refused_in_words(compiling: Worker) -> None:
    found = failure(compiling, "SCALABLE")
    why = "no target has scalable vectors; give sizes without brackets"
    assert found == Failure(Stage.RESOURCES, f"vector<[8]x8x8xf32>: {why}")
