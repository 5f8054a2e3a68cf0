import numpy as np
import pytest

from tests.search.tasks import grid, line, task
from tuner.search import surrogates
from tuner.search.configurations import Column, RowTable
from tuner.search.surrogates import _questions
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_cliff_is_learned_where_a_sum_decides() -> None:
    square = task(grid("abc"))
    values = np.where(square.table.codes[:, 0] + square.table.codes[:, 1] > 8, 1.0, -1.0)
    seen = rng(1).permutation(512)[:150]
    mean, _ = surrogates.grow(square.table.part(seen), values[seen], rng()).predict(square.table)
    unseen = np.setdiff1d(np.arange(512), seen)
    assert np.mean(np.sign(mean[unseen]) == values[unseen]) > 0.85


def test_what_was_not_seen_is_less_sure() -> None:
    one = task(line(60))
    seen = np.arange(20)
    _, deviation = surrogates.grow(one.table.part(np.repeat(seen, 5)), np.zeros(100), rng()).predict(
        one.table
    )
    assert deviation[:15].mean() < deviation[40:].mean()


def test_texts_and_missing_knobs_are_asked_about() -> None:
    spaces = (
        SearchSpace("s", (Knob("o", ("x", "y", "z")), Knob("a", (1, 2, 4)))),
        SearchSpace("t", (Knob("a", (1, 2, 4)),)),
    )
    table = RowTable.of(FeasibleSet.of(spaces))
    values = np.array([0, 0, 0, 2, 2, 2, 0, 0, 0, -1, -1, -1.0])
    mean, _ = surrogates.grow(table, values - values.mean(), rng()).predict(table)
    assert mean[3:6].min() > mean[[0, 1, 2, 6, 7, 8]].max()
    assert mean[9:].mean() < mean[[0, 1, 2, 6, 7, 8]].mean()


def test_answers_part_the_codes_of_the_column_asked_about() -> None:
    columns = (Column(3, True, False), Column(7, True, False))
    asked, results = _questions(columns, rng())
    levels = np.array([3, 7])[asked]
    for place, said in zip(levels.ravel(), results.reshape(-1, results.shape[-1]), strict=True):
        above = int(np.argmax(said[:place]))
        assert 1 <= above < place
        assert said[above:place].all()
        assert said[-1] == ((place - 1) / 2 > above - 1)


def test_equal_randomness_gives_equal_forests() -> None:
    square = task(grid("ab"))
    values = rng(2).normal(size=64)
    one, other = (surrogates.grow(square.table, values, rng(5)).predict(square.table) for _ in range(2))
    assert (one[0] == other[0]).all()


@pytest.mark.parametrize("count", [1, 2])
def test_a_table_without_columns_has_one_leaf(count: int) -> None:
    table = RowTable(np.zeros((count, 0), np.int16), ())
    mean, _ = surrogates.grow(table, np.ones(count), rng()).predict(table)
    assert mean == pytest.approx(count / (count + surrogates.SHRINKAGE))
