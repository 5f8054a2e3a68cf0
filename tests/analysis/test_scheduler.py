from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tuner.analysis.scheduler import POOL_TRIALS, ROUNDS, ColumnPool, Scheduler
from tuner.core.candidate import Candidate
from tuner.core.problem import Matmul

PROBLEMS = tuple(Matmul(m, 64, 64) for m in (8, 16, 256))
COLUMNS = tuple(Candidate.of("s", {"x": x}) for x in range(10))
SIZE = range(len(PROBLEMS))
POOL = ColumnPool(
    PROBLEMS,
    (1, 1, 1),
    COLUMNS,
    tuple(COLUMNS for _ in SIZE),
    tuple(tuple(100.0 + x for x in range(10)) for _ in SIZE),
    tuple((False,) * 10 for _ in SIZE),
)
Time = Callable[[int, int], float | None]  # (problem, x) -> seconds


def time_of(problem: int, x: int) -> float:
    return 1e-6 * PROBLEMS[problem].sizes[0] * (1 + abs(x - 7))


def replayed(
    pool: ColumnPool,
    trials: int,
    time: Time = time_of,
    seed: int = 0,
    pending: int = 0,
    has_sampler: bool = False,
) -> list[tuple[int, int | None]]:
    """Returns (problem, x) of each trial; x is None where the sampler was asked."""
    scheduler, found, waiting = Scheduler(pool, seed), [], []
    if not has_sampler:
        for problem in range(len(pool.problems)):
            scheduler.end_sampler(problem)
    for number in range(trials):
        suggestion = scheduler.suggest(number)
        if suggestion is None:
            break
        problem, column = suggestion.problem, suggestion.column
        candidate = Candidate.of("s", {"x": 1000 + number})
        if column is not None:
            projection = pool.candidates[problem][column]
            assert projection is not None
            candidate = projection
        x = dict(candidate.choices)["x"]
        assert isinstance(x, int)
        scheduler.take(problem, candidate)
        found.append((problem, None if column is None else x))
        waiting.append((problem, candidate, time(problem, x)))
        if len(waiting) > pending:
            scheduler.tell(*waiting.pop(0))
    return found


def test_every_problem_has_its_rounds_first() -> None:
    found = replayed(POOL, ROUNDS * len(PROBLEMS))
    assert [problem for problem, _ in found] == [0, 1, 2] * ROUNDS


def test_the_first_trials_follow_the_cost_model() -> None:
    assert [x for _, x in replayed(POOL, 3)] == [0, 0, 0]


def test_what_one_problem_showed_orders_the_others() -> None:
    # column 9 is much faster than the model says, on the first problem; it is the model's last on the others
    expensive = tuple(1.0 + (2.0 if x == 9 else x / 100) for x in range(10))
    pool = replace(POOL, costs=((*(1.0,) * 9, 0.5), expensive, expensive))
    found = replayed(pool, 9, lambda problem, x: 0.01 if x == 9 else 1.0)
    assert [x for problem, x in found if problem == 1].index(9) < 3


def test_then_trials_go_where_time_is_spent() -> None:
    tried = Counter(problem for problem, _ in replayed(POOL, 24)[ROUNDS * 3 :])
    assert tried[2] == 6  # all that is left of the slowest
    assert tried[1] >= tried[0]


def test_a_problem_that_occurs_often_is_worth_more() -> None:
    often = replace(POOL, counts=(1000, 1, 1))
    tried = Counter(problem for problem, _ in replayed(often, ROUNDS * 3 + 6)[ROUNDS * 3 :])
    assert tried[0] >= 5


def test_the_whole_pool_is_tried_once_and_then_nothing() -> None:
    found = replayed(POOL, 1000, pending=2)
    assert len(found) == len(set(found)) == len(PROBLEMS) * len(COLUMNS)


def test_columns_with_one_projection_are_tried_once() -> None:
    same = tuple(COLUMNS[x // 2] for x in range(10))
    found = replayed(replace(POOL, candidates=(same, COLUMNS, COLUMNS)), 1000)
    assert sorted(x for problem, x in found if problem == 0 and x is not None) == [0, 1, 2, 3, 4]


def test_what_does_not_apply_is_not_tried() -> None:
    none = (None,) * 9
    found = replayed(replace(POOL, candidates=((*none, COLUMNS[9]), COLUMNS, COLUMNS)), 1000)
    assert [x for problem, x in found if problem == 0] == [9]


def test_what_breaks_a_preference_comes_last() -> None:
    demoted = tuple(x < 8 for x in range(10))
    found = replayed(replace(POOL, is_demoted=(demoted,) * 3), 9)
    assert [x for problem, x in found if problem == 0] == [8, 9, 0]


def test_the_sampler_proposes_before_what_breaks_a_preference() -> None:
    demoted = tuple(x < 8 for x in range(10))
    found = replayed(replace(POOL, is_demoted=(demoted,) * 3), 9, has_sampler=True)
    assert [x for problem, x in found if problem == 0] == [8, 9, None]


def test_after_some_trials_the_sampler_proposes_every_second_one() -> None:
    found = replayed(POOL, 400, has_sampler=True)
    of_slowest = [x for problem, x in found if problem == 2]
    assert None not in of_slowest[: len(COLUMNS)]
    assert set(of_slowest[len(COLUMNS) :]) == {None}  # the pool is empty
    large = tuple(Candidate.of("s", {"x": x}) for x in range(40))
    wide = ColumnPool(
        PROBLEMS[:1], (1,), large, (large,), (tuple(1.0 + x for x in range(40)),), ((False,) * 40,)
    )
    asked = [
        x is None for _, x in replayed(wide, POOL_TRIALS + 6, lambda _problem, _x: 1.0, has_sampler=True)
    ]
    assert not any(asked[:POOL_TRIALS])
    assert asked[POOL_TRIALS:] == [POOL_TRIALS % 2 == 1, POOL_TRIALS % 2 == 0] * 3


def test_a_sampler_without_more_leaves_the_pool() -> None:
    scheduler = Scheduler(POOL, 0)
    for problem in SIZE:
        scheduler.end_sampler(problem)
        for candidate in COLUMNS:
            scheduler.take(problem, candidate)
            scheduler.tell(problem, candidate, 1.0)
    assert scheduler.suggest(30) is None


def test_a_problem_where_all_fail_does_not_take_the_whole_budget() -> None:
    found = replayed(POOL, 24, lambda problem, x: None if problem == 1 else time_of(problem, x))
    assert Counter(problem for problem, _ in found)[1] < 12


def test_a_problem_where_all_fail_is_no_reason_to_stop() -> None:
    assert len(replayed(POOL, 1000, lambda _problem, _x: None)) == 30


def test_equal_seeds_give_equal_trials_also_after_a_replay() -> None:
    assert replayed(POOL, 25, seed=3, pending=2) == replayed(POOL, 25, seed=3, pending=2)
    every = [replayed(POOL, 25, seed=seed) for seed in range(8)]
    assert any(one != every[0] for one in every)  # some trials explore


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


def test_trials_go_where_times_are_far_from_the_roofline() -> None:
    def trials(floors_s: tuple[float, ...]) -> list[int]:
        """Returns the trials of each problem, where all take the same time whatever is tried."""
        scheduler, counts = Scheduler(POOL, 0, floors_s), [0] * len(PROBLEMS)
        for number in range(24):
            suggestion = scheduler.suggest(number)
            assert suggestion is not None
            candidate = Candidate.of("s", {"x": 1000 + number})
            scheduler.take(suggestion.problem, candidate)
            scheduler.tell(suggestion.problem, candidate, 1e-6)
            counts[suggestion.problem] += 1
        return counts

    at_the_roofline, far, beyond = trials((1e-6, 0.1e-6, 2e-6))
    assert at_the_roofline == beyond  # a time below the least is no reason to stop, either
    assert far > 2 * at_the_roofline
    assert max(trials(())) - min(trials(())) <= 1


def test_floors_are_one_for_each_problem() -> None:
    with pytest.raises(ValueError, match="floors_s: found 1, allowed 3"):
        Scheduler(POOL, 0, (1.0,))
