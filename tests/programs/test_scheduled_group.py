"""Which of several schedules a group is compiled with."""

from collections.abc import Iterator

import pytest

from tests.op_group_problems import first_script, program_text
from tuner.core.candidate import Candidate
from tuner.core.group_schedule import GroupSchedule
from tuner.core.problem import Problem
from tuner.core.schedule_origins import FIRST, NEAREST, TUNED
from tuner.programs.op_groups.group_program import FormedProgram, group_program
from tuner.programs.scheduled_group import schedule_group
from tuner.runtime.cpu.describe_host import describe_machine

pytestmark = pytest.mark.mlir

CANDIDATE = Candidate.of("rows_cpu", {"chunk": 16})
BROKEN = "module attributes {transform.with_named_sequence} { transform.named_sequence @other() }"


def test_the_first_schedule_that_compiles_is_used() -> None:
    formed = group_program(program_text())
    assert isinstance(formed, FormedProgram)
    rows = formed.program.groups[1]

    def two(problem: Problem) -> Iterator[GroupSchedule]:
        yield GroupSchedule(CANDIDATE, BROKEN, TUNED, 1)
        yield GroupSchedule(CANDIDATE, first_script(problem).text, NEAREST, 2)

    def broken(_problem: Problem) -> Iterator[GroupSchedule]:
        yield GroupSchedule(CANDIDATE, BROKEN, TUNED, 1)

    machine = describe_machine()
    assert schedule_group(rows, machine, two).summary.origin == NEAREST
    assert schedule_group(rows, machine, broken).summary.origin == FIRST


PAIR = """
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%x: tensor<8x16xf32>, %a: tensor<16x32xf32>, %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8x32xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
    %gate = linalg.matmul ins(%x, %a : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%fill : tensor<8x32xf32>) -> tensor<8x32xf32>
    %up = linalg.matmul ins(%x, %b : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%fill : tensor<8x32xf32>) -> tensor<8x32xf32>
    %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<8x32xf32>, tensor<8x32xf32>) outs(%empty : tensor<8x32xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      linalg.yield %m : f32
    } -> tensor<8x32xf32>
    return %r : tensor<8x32xf32>
  }
}
"""


def test_two_products_of_one_a_count_once_each() -> None:
    formed = group_program(PAIR)
    assert isinstance(formed, FormedProgram)
    (pair,) = formed.program.groups
    summary = schedule_group(pair, describe_machine(), lambda _problem: iter(())).summary
    assert summary.flop == 2 * 2 * 8 * 32 * 16
