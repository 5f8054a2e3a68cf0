"""Which of several schedules a fusion is compiled with."""

from collections.abc import Iterator

import pytest

from tests.op_group_problems import first_script, program_text
from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.core.problem import Problem
from tuner.core.programs import FIRST, NEAREST, TUNED, FusionSchedule
from tuner.programs.fusion_compiler import schedule_fusion
from tuner.programs.fusions.pipeline import FormedProgram, fuse_program
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir

CANDIDATE = Candidate.of("rows_cpu", {"chunk": 16})
BROKEN = "module attributes {transform.with_named_sequence} { transform.named_sequence @other() }"


def test_the_first_schedule_that_compiles_is_used() -> None:
    formed = fuse_program(program_text())
    assert isinstance(formed, FormedProgram)
    rows = formed.program.fusions[1]

    def two(problem: Problem) -> Iterator[FusionSchedule]:
        yield FusionSchedule(CANDIDATE, BROKEN, TUNED, 1)
        yield FusionSchedule(CANDIDATE, first_script(problem).text, NEAREST, 2)

    def broken(_problem: Problem) -> Iterator[FusionSchedule]:
        yield FusionSchedule(CANDIDATE, BROKEN, TUNED, 1)

    machine = describe_machine()
    assert schedule_fusion(rows, machine, two).summary.origin == NEAREST
    assert schedule_fusion(rows, machine, broken).summary.origin == FIRST


PAIR = text_beside(__file__, "PAIR")


def test_two_products_of_one_a_count_once_each() -> None:
    formed = fuse_program(PAIR)
    assert isinstance(formed, FormedProgram)
    (pair,) = formed.program.fusions
    summary = schedule_fusion(pair, describe_machine(), lambda _problem: iter(())).summary
    assert summary.flop == 2 * 2 * 8 * 32 * 16
