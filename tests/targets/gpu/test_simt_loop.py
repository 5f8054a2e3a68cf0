"""The rotated loop of the CUDA-core strategy: right under all schedules, and found out where it is broken."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.targets.gpu.test_mma_sync_loop import (
    SCHEDULES,
    Rotated,
    broken,
    drop_barrier,
    read_before_the_wait,
    read_the_stage_of_this_tile,
    use_fragments_one_step_late,
)
from tests.targets.gpu.test_simt import OF_F64, point
from tuner.core.problem import Matmul, Problem

pytestmark = pytest.mark.mlir

TINY: dict[str, Any] = {"block_m": 32, "block_n": 32, "split_n": 1, "prefetch": 1}
OF_NT: dict[str, Any] = {"split_n": 4, "thread_n": 1, "pad_bytes": 16, "depth": 3}
POINTS: tuple[tuple[Problem, str, dict[str, Any]], ...] = (
    (Matmul(32, 31, 40), "sm_90", TINY | {"unroll_k": 1}),
    (Matmul(31, 32, 36, layout="nt"), "sm_80", TINY | OF_NT),
    (Matmul(32, 18, 24, "f64", "tn"), "sm_90", TINY | OF_F64 | {"split_m": 2, "depth": 1}),
)
MUTATIONS = (
    drop_barrier,
    read_the_stage_of_this_tile,
    use_fragments_one_step_late,
    read_before_the_wait,
)


@pytest.mark.parametrize(("problem", "chip", "knobs"), POINTS, ids=str)
def test_a_rotated_loop_is_right_under_all_schedules(
    problem: Problem, chip: str, knobs: dict[str, Any]
) -> None:
    one = point(problem, chip, **knobs)
    program = one.program()
    *others, behind = (part.count("ld.shared") for part in program.ptx.split("bar.sync"))
    assert 0 < behind < sum(others) / 2  # LLVM would move all of them to where the loop begins
    for schedule in SCHEDULES:
        verdict, worst, simulations = one.run(program, schedule_seed=schedule)
        assert verdict.max_error <= 1.0, worst
        assert not any(simulation.hazards for simulation in simulations)


@pytest.mark.parametrize("change", MUTATIONS)
def test_a_broken_loop_is_caught(change: Callable[[Rotated], None]) -> None:
    one = point(Matmul(32, 32, 40), **TINY)
    verdict, _, simulations = one.run(broken(one, change))
    assert not verdict.max_error <= 1.0 or any(simulation.races for simulation in simulations)
