"""A compiler that crashes or hangs ends its child, and nothing of the user's."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tuner
from tests.programs.crashing_compiler import crash
from tuner.core.errors import CandidateError, Stage

pytestmark = pytest.mark.mlir

compile_child = pytest.importorskip("tuner.programs.compile")

RIGHT = "func.func @f(%a: memref<4xf32>) { return }"


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("payload", "reason"),
    [("{segfault", "killed by SIGSEGV"), ("{abort", "killed by SIGABRT"), ("{hang", "timed out")],
)
def test_a_crash_or_hang_of_the_compiler_is_an_error(
    payload: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_child, "compile_and_check", crash)
    monkeypatch.setattr(compile_child, "TIMEOUT_S", 1.0)

    def compiled_twice() -> list[CandidateError]:
        found = []
        for _ in range(2):  # the second finds the thread's child gone
            with pytest.raises(CandidateError, match=f"payload: compiler: .*{reason}") as caught:
                tuner.compile_program(payload, "simulator")
            found.append(caught.value)
        return found

    with ThreadPoolExecutor(1) as fresh:  # a thread that has no child yet
        assert [error.stage for error in fresh.submit(compiled_twice).result()] == [Stage.COMPILE] * 2


def test_programs_of_a_thread_share_a_child() -> None:
    tuner.compile_program(RIGHT, "simulator").close()
    child = compile_child.CHILDREN.of_this_thread().child
    tuner.compile_program(RIGHT, "cpu").close()
    assert compile_child.CHILDREN.of_this_thread().child is child is not None


@pytest.mark.slow
def test_a_forked_process_compiles_with_a_child_of_its_own() -> None:
    def compile_and_report(reports: Any) -> None:
        try:
            tuner.compile_program(RIGHT, "simulator").close()
            reports.put("compiled")
        except BaseException as error:  # noqa: BLE001 - for the parent
            reports.put(repr(error))

    tuner.compile_program(RIGHT, "simulator").close()
    child = compile_child.CHILDREN.of_this_thread().child
    context = multiprocessing.get_context("fork")
    reports = context.Queue()
    forked = context.Process(target=compile_and_report, args=(reports,))
    forked.start()
    assert reports.get(timeout=120) == "compiled"
    forked.join()
    tuner.compile_program(RIGHT, "simulator").close()
    assert compile_child.CHILDREN.of_this_thread().child is child is not None
