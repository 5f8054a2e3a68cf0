"""Kernels that cheat, through the judge: none gets a time."""

import numpy as np
import pytest

from tests.targets.cpu.dishonest_kernels import KERNELS, dishonest_code
from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Matmul, Problem
from tuner.core.target import Artifact, Effort
from tuner.payload.cpu import partition
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.workers.judge import Judgement, judge

pytestmark = pytest.mark.mlir

SMALL = Matmul(4, 16, 8)  # many calls a sample
LARGE = Matmul(192, 192, 192)  # one call a sample
PANELS = partition(SMALL, 1, "none", 1)
EFFORT = Effort(budget_s=0.02)
# Right in the first calls, or only where inputs change within a sample: a large problem has too few calls.
OF_MANY_CALLS = ("lazy_after_20", "lazy_at_random", "packs_b_once", "wrong_from_15")
ELSEWHERE = ("honest", "small_is_zero", "starts_a_process")
CHEATS = [name for name in KERNELS if name not in ELSEWHERE]


def judged(name: str, problem: Problem, seed: int = 0) -> Judgement:
    artifact = Artifact(dishonest_code(name, problem), name, partition(problem, 1, "none", 1))
    return judge(CpuEvaluator(1), problem, artifact, EFFORT, np.random.default_rng(seed))


@pytest.mark.parametrize("name", CHEATS)
def test_a_kernel_that_cheats_gets_no_time(name: str) -> None:
    stage = Stage.RUN if name == "starts_a_thread" else Stage.VERIFY
    reason = r"elements are wrong|left an element of C unwritten in \d+ of \d+ calls|started 1 threads"
    with pytest.raises(CandidateError, match=reason) as caught:
        judged(name, SMALL)
    assert caught.value.stage == stage


@pytest.mark.parametrize("name", [name for name in CHEATS if name not in OF_MANY_CALLS])
def test_nor_does_it_where_a_sample_is_one_call(name: str) -> None:
    with pytest.raises(CandidateError, match=r"elements are wrong|unwritten in|started 1 threads"):
        judged(name, LARGE)


@pytest.mark.parametrize("problem", [SMALL, LARGE], ids=["small", "large"])
def test_an_honest_kernel_does(problem: Problem) -> None:
    measurement = judged("honest", problem).measurement
    assert measurement is not None
    assert measurement.median_s > 0


def loaded_pair(name: str) -> tuple[CpuEvaluator, tuple[object, ...]]:
    target = CpuEvaluator(1)
    kernels = (Artifact(dishonest_code(each, SMALL), each, PANELS) for each in (name, "honest"))
    return target, tuple(target.load(SMALL, kernel) for kernel in kernels)


def test_a_finalist_that_reads_small_numbers_as_zeros_is_found_out() -> None:
    assert judged("small_is_zero", SMALL).measurement is not None  # usual draws have none
    target, loaded = loaded_pair("small_is_zero")
    with pytest.raises(CandidateError, match="elements looked at are wrong") as caught:
        target.measure_together(SMALL, loaded, EFFORT, np.random.default_rng(0))
    assert caught.value.stage == Stage.VERIFY


@pytest.mark.parametrize("name", ["filled_is_done", "lazy_after_20", "wrong_each_7th", "packs_b_once"])
def test_a_finalist_that_cheats_gets_no_time(name: str) -> None:
    target, loaded = loaded_pair(name)
    with pytest.raises(CandidateError, match=r"elements (looked at )?are wrong|unwritten in|NaN or infinite"):
        target.measure_together(SMALL, loaded, EFFORT, np.random.default_rng(0))


def test_honest_finalists_do() -> None:
    target, loaded = loaded_pair("honest")
    assert len(target.measure_together(SMALL, loaded, EFFORT, np.random.default_rng(0))) == 2
