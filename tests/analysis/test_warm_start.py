from tests.tuning.fakes import MACHINE
from tuner.analysis.warm_start import POINTS, TASKS, Known, TuningTask, warm_points
from tuner.core.candidate import Candidate
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
