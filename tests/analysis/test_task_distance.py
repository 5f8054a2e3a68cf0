from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tuning.fakes import MACHINE
from tuner.analysis.warm_start import (
    OTHER_KIND,
    SAME_KIND,
    TuningTask,
    distance,
    machine_distance,
    nearest_first,
)
from tuner.core.gpu import CHIPS
from tuner.core.machine import Machine, gpu_machine
from tuner.core.problem import Matmul, Problem

GPU = gpu_machine("cuda", CHIPS["sm_90"], "H200")


def task(problem: Problem, machine: Machine = MACHINE, threads: int = 1) -> TuningTask:
    return TuningTask(problem, machine, threads)


OURS = task(Matmul(512, 512, 512))
SIZES = st.integers(1, 1 << 20)


def test_a_task_is_at_no_distance_from_itself() -> None:
    assert distance(OURS, OURS) == 0.0


@given(SIZES, SIZES, SIZES)
def test_distance_is_the_same_both_ways(m: int, n: int, k: int) -> None:
    other = task(Matmul(m, n, k, layout="nt"), replace(MACHINE, name="other"), threads=4)
    assert distance(OURS, other) == pytest.approx(distance(other, OURS))


def test_sizes_count_by_their_ratio() -> None:
    twice, half = (distance(OURS, task(Matmul(m, 512, 512))) for m in (1024, 256))
    assert twice == half == 1.0


@pytest.mark.parametrize(
    ("nearer", "farther"),
    [
        (task(Matmul(512, 512, 500)), task(Matmul(512, 512, 512, layout="nt"))),
        (task(Matmul(512, 512, 512, epilogue="bias_relu")), task(Matmul(512, 512, 512, layout="nt"))),
        (task(Matmul(512, 512, 512, layout="nt")), task(Matmul(512, 512, 512, dtype="f64"))),
        (task(Matmul(512, 512, 512), threads=2), task(Matmul(512, 512, 512), threads=8)),
        (task(Matmul(512, 512, 512)), task(Matmul(512, 512, 512), replace(MACHINE, name="other"))),
    ],
)
def test_what_carries_over_better_is_nearer(nearer: TuningTask, farther: TuningTask) -> None:
    near, far = distance(OURS, nearer), distance(OURS, farther)
    assert near is not None
    assert far is not None
    assert near < far


def test_nothing_carries_over_from_a_gpu_to_a_processor() -> None:
    assert distance(OURS, task(Matmul(512, 512, 512), GPU)) is None


def test_machines_that_run_the_same_code_are_nearer() -> None:
    assert machine_distance(GPU, replace(GPU, name="H100")) == SAME_KIND
    assert machine_distance(GPU, gpu_machine("cuda", CHIPS["sm_80"], "A100")) == OTHER_KIND


def test_the_nearest_come_first_and_equally_near_ones_as_given() -> None:
    gpu = task(Matmul(512, 512, 512), GPU)
    far, near, too = (task(Matmul(m, 512, 512)) for m in (4096, 1024, 256))
    assert nearest_first(OURS, (far, gpu, near, too), lambda each: each) == [near, too, far]
