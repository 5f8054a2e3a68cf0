"""Schedules that somebody who knows MLIR writes first: each is right, or says what is wrong."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Failure, Stage
from tuner.core.interfaces import Effort, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import evaluation_spec
from tuner.runtime.workers.worker import Worker
from tuner.space.scripts.schedule import Schedule
from tuner.targets.cpu.compiler import CpuCompiler

pytestmark = pytest.mark.mlir
BEGIN = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.consumed}) {
"""
END = "    transform.yield\n  }\n}\n"
NAMES = (
    *("TILE", "TILE_VECTORIZE", "MASKED", "PAD_TILE", "TILE_TWICE", "FORALL", "BUFFERIZED"),
    *("TRANSFERS_OF_RANK_2", "FUSE", "INTERCHANGE", "UNROLL", "SPLIT_REDUCTION", "VECTORIZE_CHILDREN"),
    *("LOWER_CONTRACTION", "PACK", "HOIST_PAD", "HOIST_SUBSETS", "PROMOTE"),
)
DIVIDED, RAGGED, ROW = (64, 64, 64), (67, 35, 51), (1, 37, 64)
ZEROS = {  # of A, B and C
    "f32": ("0.0 : f32",) * 3,
    "f64": ("0.0 : f64",) * 3,
    "bf16": ("0.0 : bf16", "0.0 : bf16", "0.0 : f32"),
    "i8": ("0 : i8", "0 : i8", "0 : i32"),
}
WHY = "its sizes are dynamic: a tile size does not divide (pad, peel, or give large enough vector_sizes)"
SECONDS = 120


@pytest.fixture(scope="module")
def child() -> Iterator[Worker]:
    """Gives a child process that evaluates: a stack overflow of a kernel would end this one."""
    factory = Factory("tuner.targets.cpu.evaluator:child_evaluator", (1, (), ""))
    worker = Worker(evaluation_spec(factory), 4 << 30)
    yield worker
    worker.kill()


def schedule(name: str, dtype: str) -> Schedule:
    text = text_beside(__file__, name)
    for number in range(text.count("{zero}")):
        text = text.replace("{zero}", ZEROS[dtype][number], 1)
    return Schedule(BEGIN + text + END, name)


def outcome(child: Worker, script: str, problem: Problem) -> str:
    """Returns "right", or the stage and the reason of the failure."""
    try:
        artifact = CpuCompiler().compile(problem, Script.of(script))
    except CandidateError as error:
        return f"{error.stage.value}: {error.reason}"
    effort = Effort(budget_s=0.001)
    reply = child.ask("evaluate", problem, artifact, effort, 0, stage=Stage.RUN, timeout_s=SECONDS)
    if isinstance(reply.value, Failure):
        return f"{reply.value.stage.value}: {reply.value.reason}"
    return "right"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("size", [DIVIDED, RAGGED, ROW], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_first_schedules_are_right_or_say_what_is_wrong(
    child: Worker, name: str, size: tuple[int, int, int]
) -> None:
    for dtype in ZEROS:
        read = schedule(name, dtype)
        first = {knob.name: knob.choices[0] for knob in read.knobs}
        found = outcome(child, read.select(Candidate.of(name, first)), MatmulProblem("matmul", size, dtype))
        if name == "TILE_VECTORIZE" and size != DIVIDED:
            assert found.endswith(WHY), dtype
        else:
            assert found == "right", dtype


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_values_of_the_knobs_are_right(child: Worker, name: str) -> None:
    read = schedule(name, "f32")
    for choices in product(*(knob.choices for knob in read.knobs)):
        values = dict(zip((knob.name for knob in read.knobs), choices, strict=True))
        assert outcome(child, read.select(Candidate.of(name, values)), Matmul(*DIVIDED)) == "right", values


OWN = text_beside(__file__, "OWN")


def test_tile_and_vectorize_alone_does_not_overflow_the_stack(child: Worker) -> None:
    assert outcome(child, BEGIN + OWN + END, Matmul(256, 256, 256)) == "right"


def test_a_stack_overflow_is_the_reason_of_the_failure(child: Worker) -> None:
    endless = """
  llvm.func @matmul(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %bytes = llvm.mlir.constant(65536 : i64) : i64
    %zero = llvm.mlir.constant(0 : i8) : i8
    llvm.br ^again
  ^again:
    %memory = llvm.alloca %bytes x i8 : (i64) -> !llvm.ptr
    llvm.store volatile %zero, %memory : i8, !llvm.ptr
    llvm.br ^again
  }
"""
    problem = Matmul(*DIVIDED)
    artifact = CpuCompiler().compile(problem, Script.of(BEGIN + OWN + END))
    faulty = replace(artifact, code=KernelCode.of_host(f"module {{{endless}}}"))
    reply = child.ask("evaluate", problem, faulty, Effort(), 0, stage=Stage.RUN, timeout_s=SECONDS)
    assert isinstance(reply.value, Failure)
    assert "stack overflow: the kernel needs more than the" in reply.value.reason
