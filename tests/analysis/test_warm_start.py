from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tuning.fakes import MACHINE
from tuner.analysis.warm_start import (
    OTHER_KIND,
    POINTS,
    SAME_KIND,
    TASKS,
    Known,
    TuningTask,
    distance,
    machine_distance,
    nearest_first,
    warm_points,
)
from tuner.core.candidate import Candidate
from tuner.core.gpu import CHIPS
from tuner.core.machine import Machine, gpu_machine
from tuner.core.problem import Matmul, Problem
from tuner.core.runs import WARM_START

OURS = TuningTask(Matmul(512, 512, 512), MACHINE, 1)


def point(x: int) -> Candidate:
    return Candidate.of("s", {"x": x})


def known(problem: Problem, *xs: int, who: str = "run 1") -> Known:
    return Known(TuningTask(problem, MACHINE, 1), tuple((point(x), who) for x in xs))


def xs_of(*tasks: Known) -> list[int]:
    return [int(dict(each.candidate.choices)["x"]) for each in warm_points(OURS, tasks)]


def test_the_best_of_each_task_come_interleaved_the_nearest_task_first() -> None:
    far, near = known(Matmul(4096, 512, 512), 1, 2, 3), known(Matmul(1024, 512, 512), 11, 12)
    assert xs_of(far, near) == [11, 1, 12, 2, 3]


def test_a_point_that_two_tasks_know_is_proposed_once() -> None:
    assert xs_of(known(Matmul(1024, 512, 512), 1, 2), known(Matmul(2048, 512, 512), 1, 3)) == [1, 2, 3]


def test_there_are_so_many_points_of_so_many_tasks_and_no_more() -> None:
    tasks = [
        known(Matmul(512 << number, 512, 512), *range(100 * number, 100 * number + 50)) for number in range(9)
    ]
    found = xs_of(*tasks)
    assert len(found) == POINTS
    assert {x // 100 for x in found} == set(range(TASKS))


def test_nothing_known_gives_nothing() -> None:
    assert warm_points(OURS, ()) == ()
    assert warm_points(OURS, (known(Matmul(512, 512, 512)),)) == ()


def test_a_point_says_which_problem_and_run_it_comes_from() -> None:
    same = known(Matmul(256, 256, 256), 1, who="run 7")
    other = known(Matmul(256, 256, 256, "bf16", "nt", "bias_relu", "bf16"), 2, who="file")
    first, second = warm_points(OURS, (same, other))
    assert (first.origin, first.source) == (WARM_START, "256x256x256 (run 7)")
    assert second.source == "256x256x256 bf16 nt bias_relu (file)"


GPU = gpu_machine("cuda", CHIPS["sm_90"], "H200")


def task(problem: Problem, machine: Machine = MACHINE, threads: int = 1) -> TuningTask:
    return TuningTask(problem, machine, threads)


TASK_DISTANCE_OURS = task(Matmul(512, 512, 512))


SIZES = st.integers(1, 1 << 20)


def test_a_task_is_at_no_distance_from_itself() -> None:
    assert distance(TASK_DISTANCE_OURS, TASK_DISTANCE_OURS) == 0.0


@given(SIZES, SIZES, SIZES)
def test_distance_is_the_same_both_ways(m: int, n: int, k: int) -> None:
    other = task(Matmul(m, n, k, layout="nt"), replace(MACHINE, name="other"), threads=4)
    assert distance(TASK_DISTANCE_OURS, other) == pytest.approx(distance(other, TASK_DISTANCE_OURS))


def test_sizes_count_by_their_ratio() -> None:
    twice, half = (distance(TASK_DISTANCE_OURS, task(Matmul(m, 512, 512))) for m in (1024, 256))
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
    near, far = distance(TASK_DISTANCE_OURS, nearer), distance(TASK_DISTANCE_OURS, farther)
    assert near is not None
    assert far is not None
    assert near < far


def test_nothing_carries_over_from_a_gpu_to_a_processor() -> None:
    assert distance(TASK_DISTANCE_OURS, task(Matmul(512, 512, 512), GPU)) is None


def test_machines_that_run_the_same_code_are_nearer() -> None:
    assert machine_distance(GPU, replace(GPU, name="H100")) == SAME_KIND
    assert machine_distance(GPU, gpu_machine("cuda", CHIPS["sm_80"], "A100")) == OTHER_KIND


def test_the_nearest_come_first_and_equally_near_ones_as_given() -> None:
    gpu = task(Matmul(512, 512, 512), GPU)
    far, near, too = (task(Matmul(m, 512, 512)) for m in (4096, 1024, 256))
    assert nearest_first(TASK_DISTANCE_OURS, (far, gpu, near, too), lambda each: each) == [near, too, far]
