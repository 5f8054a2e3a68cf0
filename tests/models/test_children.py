"""Fusions are compiled once, side by side, and kept for other processes until what they depend on changes."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import is_
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import CandidateError, Stage, TunerError
from tuner.core.fusions import FUSION_ENTRY
from tuner.core.instruction_sets import AVX2
from tuner.core.programs import (
    LOOPS,
    TUNED,
    ExplainedFusion,
    FusionSchedule,
    given_up_note,
    no_schedules,
)
from tuner.db.store import Store
from tuner.mlir.fusions.facts import fusion_problem
from tuner.models import children as module
from tuner.models import compile as compile_module
from tuner.models import compile_work, fusion_compiler, linked_programs
from tuner.models.children import CompilingChildren
from tuner.models.compile import compile_program
from tuner.models.compile_work import kept_program as kept_of_request
from tuner.models.compile_work import work_of_missing_fusions
from tuner.models.fusion_compiler import FIRST_CONFIGURATIONS, FusionTask, ScheduledFusion
from tuner.models.fusions.payload import NotFused
from tuner.models.fusions.pipeline import FormedText
from tuner.models.linked_programs import (
    CompileTask,
    compile_fusions,
    formed_text,
    kept_program,
    missing_fusions,
)
from tuner.models.request import ProgramRequest
from tuner.models.run.fused_code import PROGRAM_ENTRY, FusedImage
from tuner.models.run.fused_program import FusedFunction
from tuner.results.output.program_tables import fusion_lines
from tuner.runtime.compiled_files import compiled_files
from tuner.runtime.cpu.host import describe_machine, usable_processors
from tuner.space.scripts.choice import first_configuration
from tuner.targets.cpu import compiler

pytestmark = pytest.mark.mlir
# Three products, two of them equal but for their weights; the third one's weight is computed of a constant.
TEXT = text_beside(__file__, "LAYERS")
PRODUCT = text_beside(__file__, "PRODUCT")  # one of the three
WHOLE_NUMBERS = """func.func @main(%a: tensor<4x8xi64>) -> tensor<4x8xi64> {
  %0 = arith.addi %a, %a : tensor<4x8xi64>
  return %0 : tensor<4x8xi64>
}"""
X, *WEIGHTS = np.random.default_rng(0).random((4, 8, 8), np.float32)
X = X[:4]
for number, weight in enumerate(WEIGHTS, 1):
    data = f'dense<"0x{weight.tobytes().hex().upper()}">'
    TEXT = TEXT.replace(f"dense<W{number}>", data)
    PRODUCT = PRODUCT.replace(f"dense<W{number}>", data)
MACHINE = describe_machine()


@pytest.fixture(autouse=True)
def helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets programs have a helper process, as outside of the tests."""
    monkeypatch.setattr(module, "WORKERS_LIMIT", 2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the folder of compiled files, empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return compiled_files().folder


@pytest.fixture
def own_children(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives programs children that know the folder; those of earlier tests know another one."""
    own = compile_module._Children()  # noqa: SLF001
    monkeypatch.setattr(compile_module, "CHILDREN", own)
    yield
    own.of_this_thread().close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FusionTask]:
    """Gives the list of the tasks that this process has compiled."""
    tasks: list[FusionTask] = []
    make = fusion_compiler._newly_scheduled  # noqa: SLF001 - what the files are there to avoid

    def counted(task: FusionTask) -> ScheduledFusion:
        tasks.append(task)
        return make(task)

    monkeypatch.setattr(fusion_compiler, "_newly_scheduled", counted)
    return tasks


def image(text: str = TEXT, **options: Any) -> FusedImage:
    found = compile_fusions(text, None, options.pop("machine", MACHINE), **options)
    assert isinstance(found, FusedImage)
    return found


def missing(text: str, machine: Any = MACHINE) -> tuple[CompileTask, ...]:
    formed = formed_text(text, None, machine)
    assert isinstance(formed, FormedText)
    return missing_fusions(formed, machine)


def kept(text: str = TEXT, machine: Any = MACHINE, threads: int = 1) -> FusedImage | None:
    found = kept_program(text, None, machine, no_schedules, threads, {})
    assert not isinstance(found, NotFused)
    return found


def test_equal_fusions_are_compiled_once_and_a_second_program_compiles_none(made: list[FusionTask]) -> None:
    assert len(missing(TEXT)) == 3  # with the code of the constant
    assert kept() is None
    first = image()
    assert (len(first.code.fusions), len(made)) == (3, 2)
    assert missing(TEXT) == ()
    again, found = image(), kept()
    assert len(made) == 2
    assert found is not None
    assert first.code == again.code == found.code
    for other in (again, found):
        assert all(map(is_, first.weights, other.weights))
    hidden = np.maximum(np.maximum(X @ WEIGHTS[0], 0) @ WEIGHTS[1], 0)
    expected = hidden @ np.sqrt(WEIGHTS[2].T)
    assert np.allclose(FusedFunction(found.code, found.weights)(X), expected, rtol=1e-5)


def test_equal_fusions_have_one_machine_code_which_other_programs_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries: list[str] = []
    make = compiler.object_code

    def counted(llvm_text: str, entry: str) -> bytes:
        entries.append(entry)
        return make(llvm_text, entry)

    for compiling in (fusion_compiler, linked_programs):
        monkeypatch.setattr(compiling, "object_code", counted)
    for task in missing(TEXT):
        task.compile_with_machine_code()
    assert entries == [FUSION_ENTRY] * 2
    first = image()
    assert entries == [*[FUSION_ENTRY] * 2, PROGRAM_ENTRY]  # three calls of two codes
    assert len(first.code.fusions) == 3
    second = image(PRODUCT)  # a program of one of the fusions
    assert entries == [*[FUSION_ENTRY] * 2, PROGRAM_ENTRY, PROGRAM_ENTRY]
    assert FusedFunction(first.code, first.weights)(X).shape == (4, 8)
    assert FusedFunction(second.code, second.weights)(X).shape == (4, 8)


def test_a_program_is_kept_whose_fusion_no_schedule_is_for() -> None:
    asked: list[Any] = []

    def schedules(problem: Any, threads: int) -> Iterator[Any]:
        asked.append((problem, threads))
        return iter(())

    first = compile_fusions(WHOLE_NUMBERS, None, MACHINE, schedules)
    assert isinstance(first, FusedImage)
    (fusion,) = first.code.fusions
    assert fusion.element == "i64"
    found = kept_program(WHOLE_NUMBERS, None, MACHINE, schedules, 1, {})
    assert isinstance(found, FusedImage)
    assert found.code == first.code
    assert asked == []  # stored schedules are of problems


def test_schedules_are_read_once_and_children_open_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def stored(problem: Any, _threads: int) -> Iterator[FusionSchedule]:
        asked.append(problem)
        configuration = first_configuration(problem, MACHINE, 1)
        assert configuration is not None
        yield FusionSchedule(configuration[0], configuration[1].text, TUNED, 7)

    monkeypatch.setattr(compile_work, "_schedules_of", lambda *_: stored)
    database = str(tmp_path / "results.db")
    Store.open(database).close()
    request = ProgramRequest(TEXT, TargetName("cpu"), database=database)
    formed = compile_work.formed_program(request)
    assert formed is not None
    problems = compile_work.tuned_problems(request, formed)
    assert len(problems) == 2  # two of the three products are equal
    known = compile_work.with_schedules_read(request, problems)
    assert asked == [problem for problem, _ in problems]
    sent = pickle.loads(pickle.dumps(replace(known, database=str(tmp_path / "missing" / "results.db"))))
    _, *tasks = compile_work.missing_fusions(sent, formed)
    assert [task.schedule.trial for task in tasks if isinstance(task, FusionTask) and task.schedule] == [7, 7]
    linked = compile_work.linked_program(sent, formed)
    assert linked is not None
    assert [fusion.origin for fusion in linked.code.fusions] == [TUNED] * 3
    assert len(asked) == 2


def test_another_machine_number_of_threads_or_text_is_compiled(made: list[FusionTask]) -> None:
    image(PRODUCT)
    others: dict[str, dict[str, Any]] = {
        "machine": {"machine": replace(MACHINE, l2_bytes=MACHINE.l2_bytes + 1)},
        "threads": {"threads": 2},
        "text": {"text": PRODUCT.replace("tensor<4x8xf32>", "tensor<5x8xf32>")},
    }
    for changes in others.values():
        options = {"text": PRODUCT, **changes}
        assert kept(**options) is None
        made.clear()
        image(**options)
        assert made
        assert kept(**options) is not None


def test_damaged_files_are_compiled_again(folder: Path, made: list[FusionTask]) -> None:
    expected = image()
    for each in folder.iterdir():
        each.write_bytes(each.read_bytes()[:-1] + b"?")
    assert kept() is None
    made.clear()
    assert image().code == expected.code
    assert len(made) == 2
    assert kept() is not None


def test_fusions_are_compiled_in_children_and_another_process_finds_them(folder: Path) -> None:
    request = ProgramRequest(TEXT, TargetName("cpu"))
    children = CompilingChildren("program")
    try:
        children.start()
        assert len(children._helpers) == min(2, usable_processors().allowed) - 1  # noqa: SLF001
        children.compile_fusions(work_of_missing_fusions(request), timeout_s=600.0)
        assert missing(TEXT) == ()
        assert children._helpers == []  # noqa: SLF001 - they have ended
    finally:
        children.close()
    image()
    code = "import sys, tests.models.test_children as m; sys.exit(m.kept() is None)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=600).returncode == 0
    assert kept_of_request(request, {}) is not None


@pytest.mark.slow
def test_a_fusion_that_crashes_a_child_is_an_error_of_the_program_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "compiled", _crash)
    children = CompilingChildren("program")
    try:
        children.start()
        children.compile_fusions(work_of_missing_fusions(ProgramRequest(TEXT, TargetName("cpu"))), 600.0)
        assert len(missing(TEXT)) == 3
        assert children.call(partial(len, "abc"), Stage.COMPILE, 600.0) == 3  # a new child
    finally:
        children.close()


def _crash(_task: FusionTask) -> None:
    os.abort()


@pytest.mark.slow
def test_an_error_is_that_of_the_program_and_nothing_is_kept_of_it(folder: Path) -> None:
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}"
    with pytest.raises(TunerError, match="use of undeclared SSA value name"):
        compile_program(text, target="cpu")
    assert not folder.exists()


def test_a_fusion_that_was_given_up_gets_its_next_configuration_and_loops_at_last() -> None:
    (task,) = (each for each in missing(PRODUCT) if isinstance(each, FusionTask))
    problem = fusion_problem(task.fusion)
    configurations = [first_configuration(problem, MACHINE, index) for index in range(FIRST_CONFIGURATIONS)]
    count = FIRST_CONFIGURATIONS - configurations.count(None)  # a processor may have fewer
    assert count > 1
    knobs = [task.compile().summary.knobs]
    for number in range(1, count + 1):
        assert task.has_other_way
        assert task.give_up("timed out after 30 s")
        assert kept(PRODUCT) is None
        (task,) = (each for each in missing(PRODUCT) if isinstance(each, FusionTask))
        (fusion,) = image(PRODUCT).code.fusions
        assert fusion.given_up[-1] == f"configuration {number} timed out after 30 s"
        assert kept(PRODUCT) is not None
        knobs.append(fusion.knobs)
    assert fusion.origin == LOOPS
    assert not task.has_other_way
    assert len(set(knobs)) == count + 1  # no configuration twice, and no knobs of loops
    note = given_up_note([fusion])
    assert note.startswith("linalg.matmul: configuration 1 timed out after 30 s; configuration 2 timed out")
    assert note.endswith("; it is scalar loops")


def test_loops_are_the_last_way_on_a_processor_with_fewer_configurations() -> None:
    machine = replace(MACHINE, isa=AVX2)
    ways = []
    for _ in range(FIRST_CONFIGURATIONS):
        (task,) = (each for each in missing(PRODUCT, machine) if isinstance(each, FusionTask))
        ways.append((len(task.given_up), task.has_other_way))
        task.give_up("timed out after 30 s")
    assert ways == [(0, True), (1, True), (2, False)]  # two configurations, then loops


@pytest.mark.slow
@pytest.mark.usefixtures("own_children")
def test_a_crash_of_the_first_configuration_leaves_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compiled", _crash_at_first)
    program: Any = compile_program(PRODUCT, target="cpu")
    (fusion,) = program.code.fusions
    assert fusion.given_up == ("configuration 1 killed by SIGABRT",)
    assert np.allclose(program(X), X @ WEIGHTS[0], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("own_children")
def test_a_fusion_that_takes_too_long_is_named_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compiled", _hang_at_first)
    monkeypatch.setattr(module, "FUSION_LIMIT_S", 1.0)
    program: Any = compile_program(PRODUCT, target="cpu")
    (line,) = fusion_lines((ExplainedFusion(program.code.fusions[0]),), None)[2:3]
    assert line.startswith("note    linalg.matmul: configuration 1 timed out after 1 s; ")
    assert np.allclose(program(X), X @ WEIGHTS[0], rtol=1e-5)


@pytest.mark.slow
def test_what_takes_too_long_as_loops_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compiled", _hang)
    monkeypatch.setattr(module, "FUSION_LIMIT_S", 1.0)
    children = CompilingChildren("program")
    work = work_of_missing_fusions(ProgramRequest(PRODUCT, TargetName("cpu")))
    try:
        with pytest.raises(CandidateError, match=r"linalg\.matmul: timed out after 20 s"):
            children.compile_fusions(work, 20.0)
    finally:
        children.close()


def _crash_at_first(task: FusionTask) -> None:
    if not task.given_up:
        os.abort()
    task.compile()


def _hang_at_first(task: FusionTask) -> None:
    while task.has_other_way:
        time.sleep(60)
    task.compile()


def _hang(_task: FusionTask) -> None:
    time.sleep(600)
