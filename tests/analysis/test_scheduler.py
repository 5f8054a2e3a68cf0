from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.matrices import instance
from tests.tuning.fakes import MACHINE
from tuner.analysis import warm_start
from tuner.analysis.scheduler import POOL_TRIALS, QUIET, ROUNDS, ColumnPool, NextTrial, Scheduler
from tuner.analysis.warm_start import (
    Known,
    TuningTask,
    distance,
    is_elsewhere,
    is_same_space,
    machine_distance,
    spread,
    warm_points,
)
from tuner.core.candidate import Candidate
from tuner.core.gpu import CHIPS
from tuner.core.machine import Machine, gpu_machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.runs import WARM_START

PROBLEMS = tuple(Matmul(m, 64, 64) for m in (8, 16, 256))
COLUMNS = tuple(Candidate.of("s", {"x": x}) for x in range(10))
COSTS = tuple(100.0 + x for x in range(10))
POOL = ColumnPool(PROBLEMS, (1, 1, 1), COLUMNS, (COLUMNS,) * 3, (COSTS,) * 3, ((False,) * 10,) * 3)
Time = Callable[[int, int], float | None]  # (problem, x) -> seconds


def time_of(problem: int, x: int) -> float:
    return 1e-6 * PROBLEMS[problem].sizes[0] * (1 + abs(x - 7))


def replayed(
    pool: ColumnPool, trials: int, time: Time = time_of, seed: int = 0, pending: int = 0, asks: bool = False
) -> list[tuple[int, int | None]]:
    """Returns (problem, x) of each trial; x is None where the sampler was asked, which ``asks`` allows."""
    scheduler, found, waiting = Scheduler(pool, seed), [], []
    for problem in () if asks else range(len(pool.problems)):
        scheduler.end_sampler(problem)
    for number in range(trials):
        suggestion = scheduler.suggest(number)
        if suggestion is None:
            break
        problem, column = suggestion.problem, suggestion.column
        candidate = Candidate.of("s", {"x": 1000 + number})
        if column is not None:
            candidate = instance(Candidate, pool.candidates[problem][column])
        x = dict(candidate.choices)["x"]
        assert isinstance(x, int)
        scheduler.take(problem, candidate)
        found.append((problem, None if column is None else x))
        waiting.append((problem, candidate, time(problem, x)))
        if len(waiting) > pending:
            scheduler.tell(*waiting.pop(0))
    return found


def test_every_problem_has_its_rounds_first_and_what_one_showed_orders_the_others() -> None:
    assert [problem for problem, _ in replayed(POOL, ROUNDS * len(PROBLEMS))] == [0, 1, 2] * ROUNDS
    assert [x for _, x in replayed(POOL, 3)] == [0, 0, 0]
    # column 9 is much faster than the model says, on the first problem; it is the model's last on the others
    expensive = tuple(1.0 + (2.0 if x == 9 else x / 100) for x in range(10))
    pool = replace(POOL, costs=((*(1.0,) * 9, 0.5), expensive, expensive))
    found = replayed(pool, 9, lambda problem, x: 0.01 if x == 9 else 1.0)
    assert [x for problem, x in found if problem == 1].index(9) < 3


def test_then_trials_go_where_time_is_spent_and_often_but_not_all_where_all_fail() -> None:
    tried = Counter(problem for problem, _ in replayed(POOL, 24)[ROUNDS * 3 :])
    assert tried[2] == 6  # all that is left of the slowest
    assert tried[1] >= tried[0]
    often = replace(POOL, counts=(1000, 1, 1))
    tried = Counter(problem for problem, _ in replayed(often, ROUNDS * 3 + 6)[ROUNDS * 3 :])
    assert tried[0] >= 5
    found = replayed(POOL, 24, lambda problem, x: None if problem == 1 else time_of(problem, x))
    assert Counter(problem for problem, _ in found)[1] < 12


def test_the_whole_pool_is_tried_once_and_equal_seeds_give_equal_trials_after_a_replay() -> None:
    found = replayed(POOL, 1000, pending=2)
    assert len(found) == len(set(found)) == len(PROBLEMS) * len(COLUMNS)
    assert len(replayed(POOL, 1000, lambda _problem, _x: None)) == 30  # where all fail, too
    same = tuple(COLUMNS[x // 2] for x in range(10))  # two columns with one projection
    only = (*(None,) * 9, COLUMNS[9])  # what does not apply
    for candidates, tried in ((same, [0, 1, 2, 3, 4]), (only, [9])):
        found = replayed(replace(POOL, candidates=(candidates, COLUMNS, COLUMNS)), 1000)
        assert sorted(x for problem, x in found if problem == 0 and x is not None) == tried
    assert replayed(POOL, 25, seed=3, pending=2) == replayed(POOL, 25, seed=3, pending=2)
    every = [replayed(POOL, 25, seed=seed) for seed in range(8)]
    assert any(one != every[0] for one in every)  # some trials explore


def test_every_second_trial_is_the_samplers_and_what_breaks_a_preference_comes_last() -> None:
    demoted = replace(POOL, is_demoted=(tuple(x < 8 for x in range(10)),) * 3)
    for asks, last in ((False, 0), (True, None)):
        assert [x for problem, x in replayed(demoted, 9, asks=asks) if problem == 0] == [8, 9, last]
    of_slowest = [x for problem, x in replayed(POOL, 400, asks=True) if problem == 2]
    assert None not in of_slowest[: len(COLUMNS)]
    assert set(of_slowest[len(COLUMNS) :]) == {None}  # the pool is empty
    large, costs = zip(*((Candidate.of("s", {"x": x}), 1.0 + x) for x in range(40)), strict=True)
    wide = ColumnPool(PROBLEMS[:1], (1,), large, (large,), (costs,), ((False,) * 40,))
    asked = [x is None for _, x in replayed(wide, POOL_TRIALS + 6, lambda _problem, _x: 1.0, asks=True)]
    assert asked == [False] * POOL_TRIALS + [POOL_TRIALS % 2 == 1, POOL_TRIALS % 2 == 0] * 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"counts": (1, 1)}, "counts: found"),
        ({"counts": (1, 1, 0)}, "counts: found"),
        ({"candidates": (COLUMNS,)}, "candidates: found another size"),
        ({"costs": ((1.0,),) * 3}, "costs: found another size"),
        ({"costs": ((0.0,) * 10,) * 3}, "a cost that is not positive"),
        ({"costs": ((np.nan,) * 10,) * 3}, "a cost that is not positive"),
        ({"is_demoted": ()}, "is_demoted: found another size"),
    ],
)
def test_a_pool_that_does_not_fit_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(POOL, **changed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="floors_s: found 1, allowed 3"):
        Scheduler(POOL, 0, (1.0,))


def test_trials_go_where_times_are_far_from_the_roofline() -> None:
    def trials(floors_s: tuple[float, ...]) -> list[int]:
        """Returns the trials of each problem, where all take the same time whatever is tried."""
        scheduler, counts = Scheduler(POOL, 0, floors_s), [0] * len(PROBLEMS)
        for number in range(24):
            problem = instance(NextTrial, scheduler.suggest(number)).problem
            candidate = Candidate.of("s", {"x": 1000 + number})
            scheduler.take(problem, candidate)
            scheduler.tell(problem, candidate, 1e-6)
            counts[problem] += 1
        return counts

    at_the_roofline, far, beyond = trials((1e-6, 0.1e-6, 2e-6))
    assert (
        abs(at_the_roofline - beyond) <= 1
    )  # some trials explore; a time below the least is not a reason to stop, either
    assert far > 2 * at_the_roofline
    assert max(trials(())) - min(trials(())) <= 1


def searched(time: Time, floors_s: tuple[float, ...], counts: tuple[int, ...] = (1, 1, 1)) -> list[int]:
    """Returns the problems of trials until nothing is left to gain, at most 400."""
    scheduler = Scheduler(replace(POOL, counts=counts), 0, floors_s)
    found: list[int] = []
    while not scheduler.has_nothing_left and len(found) < 400:
        problem = instance(NextTrial, scheduler.suggest(len(found))).problem
        candidate = Candidate.of("s", {"x": 1000 + len(found)})
        scheduler.take(problem, candidate)
        scheduler.tell(problem, candidate, time(problem, found.count(problem)))
        found.append(problem)
    return found


def test_first_configurations_come_first_and_a_search_ends_where_nothing_is_left_to_gain() -> None:
    times_s = (1e-6, 1e-5, 1e-3)

    def flat(problem: int, _trial: int) -> float:
        return times_s[problem]

    own = replace(POOL, firsts=(3, None, 9))  # 0: the least of the cost model
    for floors_s, columns in (((0.0, 0.0, 0.0), [3, 0, 9]), ((), [0, 0, 0])):
        scheduler = Scheduler(own, 0, floors_s)
        for number, column in enumerate(columns):
            assert scheduler.suggest(number) == NextTrial(number, column)
            scheduler.take(number, COLUMNS[column])
    found = searched(flat, (0.0, 0.0, 0.0))
    assert found[:3] == [0, 1, 2]
    assert found.count(2) == QUIET + 1
    assert len(found) <= QUIET + 4  # the others are 1 % of the time; some trials explore
    assert searched(flat, (0.0, 0.0, 0.99e-3)) == [0, 1, 2]  # at the roofline
    assert Counter(searched(flat, (0.0, 0.0, 0.0), (1000, 1, 1)))[0] >= QUIET  # half of the time
    # what gains goes on; what has no time is tried until it is quiet; without a roofline nothing ends
    gaining = searched(lambda problem, trial: times_s[problem] * 0.98**trial, (0.0, 0.0, 0.0))
    assert gaining.count(2) > 2 * QUIET
    failing = searched(lambda problem, _trial: None if problem == 1 else times_s[problem], (0.0, 0.0, 0.0))
    assert QUIET < failing.count(1) <= QUIET + 2
    assert len(searched(flat, ())) == 400


def test_the_heaviest_problems_come_first_and_get_further_trials_before_light_ones_get_one() -> None:
    floors_s = (40e-6, 20e-6, 0.1e-6)  # in the order of their times
    times_s = (60e-6, 30e-6, 2e-6)
    scheduler = Scheduler(POOL, 0, floors_s)
    found: list[int] = []
    for number in range(12):
        problem = instance(NextTrial, scheduler.suggest(number)).problem
        candidate = Candidate.of("s", {"x": 1000 + number})
        scheduler.take(problem, candidate)
        scheduler.tell(problem, candidate, times_s[problem])
        found.append(problem)
    assert found[:2] == [0, 1]
    assert found.count(0) > found.count(1) >= 3
    assert found.count(2) <= 1


def test_where_trials_are_counted_each_problem_gets_one_first() -> None:
    scheduler = Scheduler(POOL, 0, (40e-6, 20e-6, 0.1e-6), tries_all=True)
    for number in range(3):
        assert instance(NextTrial, scheduler.suggest(number)).problem == number
        scheduler.take(number, COLUMNS[number])
        scheduler.tell(number, COLUMNS[number], 60e-6)


def test_problems_whose_first_trials_are_under_way_do_not_keep_others_waiting() -> None:
    scheduler = Scheduler(POOL, 0, (40e-6, 20e-6, 10e-6))
    for number in range(3):
        assert instance(NextTrial, scheduler.suggest(number)).problem == number
        scheduler.take(number, COLUMNS[number])
    scheduler.tell(0, COLUMNS[0], 41e-6)
    assert instance(NextTrial, scheduler.suggest(3)).problem == 1


def task(problem: Problem, machine: Machine = MACHINE, threads: int = 1) -> TuningTask:
    return TuningTask(problem, machine, threads)


CUBE, GPU = Matmul(512, 512, 512), gpu_machine("cuda", CHIPS["sm_90"], "H200")
TRANSPOSED, OTHER = Matmul(512, 512, 512, layout="nt"), replace(MACHINE, name="other")
OURS = task(CUBE)
SIZES = st.integers(1, 1 << 20)


def known(problem: Problem, *xs: int, who: str = "run 1") -> Known:
    return Known(task(problem), tuple((Candidate.of("s", {"x": x}), who) for x in xs))


def xs_of(*tasks: Known) -> list[int]:
    return [int(dict(each.candidate.choices)["x"]) for each in warm_points(OURS, tasks)]


def test_the_best_of_near_tasks_come_interleaved_each_once_and_say_where_they_come_from() -> None:
    far, near = known(Matmul(4096, 512, 512), 1, 2, 3), known(Matmul(1024, 512, 512), 11, 12)
    assert xs_of(far, near) == [11, 1, 12, 2, 3]
    assert xs_of(known(Matmul(1024, 512, 512), 1, 2), known(Matmul(2048, 512, 512), 1, 3)) == [1, 2, 3]
    assert warm_points(OURS, ()) == warm_points(OURS, (known(Matmul(512, 512, 512)),)) == ()
    tasks = [known(Matmul(512 << task, 512, 512), *range(100 * task, 100 * task + 50)) for task in range(9)]
    found = xs_of(*tasks)
    assert (len(found), {x // 100 for x in found}) == (warm_start.POINTS, set(range(warm_start.TASKS)))
    same = known(Matmul(256, 256, 256), 1, who="run 7")
    other = known(Matmul(256, 256, 256, "bf16", "nt", "bias_relu", "bf16"), 2, who="file")
    first, second = warm_points(OURS, (same, other))
    assert (first.origin, first.source) == (WARM_START, "256x256x256 (run 7)")
    assert second.source == "256x256x256 bf16 nt bias_relu (file)"


def test_points_of_the_same_space_differ_in_as_many_knobs_as_they_can() -> None:
    def point(x: int, y: int) -> tuple[Candidate, str]:
        return Candidate.of("s", {"x": x, "y": y}), "run 1"

    points = (point(0, 0), point(0, 1), point(1, 1), point(2, 2), point(1, 0))
    assert spread(points) == (points[0], points[2], points[3], points[1])
    assert spread(points[:2]) == points[:2]
    assert spread(()) == ()


def test_one_problem_on_two_machines_is_the_same_space_elsewhere() -> None:
    renamed = replace(OURS, machine=OTHER)
    assert (is_same_space(OURS, OURS), is_elsewhere(OURS, OURS)) == (True, False)
    assert is_same_space(OURS, renamed)
    assert is_elsewhere(OURS, renamed)
    assert not is_elsewhere(OURS, replace(renamed, threads=OURS.threads + 1))
    assert not is_elsewhere(OURS, replace(renamed, problem=Matmul(8, 8, 8)))


def test_what_carries_over_better_is_nearer_and_the_nearest_come_first() -> None:
    assert distance(OURS, OURS) == 0.0
    assert distance(OURS, task(CUBE, GPU)) is None
    twice, half = (distance(OURS, task(Matmul(m, 512, 512))) for m in (1024, 256))
    assert twice == half == 1.0
    assert machine_distance(GPU, replace(GPU, name="H100")) == warm_start.SAME_KIND
    assert machine_distance(GPU, gpu_machine("cuda", CHIPS["sm_80"], "A100")) == warm_start.OTHER_KIND
    for nearer, farther in (
        (task(Matmul(512, 512, 500)), task(TRANSPOSED)),
        (task(Matmul(512, 512, 512, epilogue="bias_relu")), task(TRANSPOSED)),
        (task(TRANSPOSED), task(Matmul(512, 512, 512, dtype="f64"))),
        (task(CUBE, threads=2), task(CUBE, threads=8)),
        (task(CUBE), task(CUBE, OTHER)),
    ):
        assert instance(float, distance(OURS, nearer)) < instance(float, distance(OURS, farther))
    gpu = task(CUBE, GPU)
    far, near, too = (task(Matmul(m, 512, 512)) for m in (4096, 1024, 256))
    assert warm_start.nearest_first(OURS, (far, gpu, near, too), lambda each: each) == [near, too, far]


@given(SIZES, SIZES, SIZES)
def test_distance_is_the_same_both_ways(m: int, n: int, k: int) -> None:
    other = task(Matmul(m, n, k, layout="nt"), OTHER, threads=4)
    assert distance(OURS, other) == pytest.approx(distance(other, OURS))
