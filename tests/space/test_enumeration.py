"""Rows that constraints allow: all of them, or a sample of a set too large to hold."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.space import enumeration
from tuner.space.enumeration import Indices, RowKeys, Rows, rows_of, sort_keys
from tuner.space.expressions import parse
from tuner.space.search_space import Knob, SearchSpace


def space(knobs: str, choices: int, *constraints: str) -> SearchSpace:
    every = tuple(Knob(name, tuple(range(choices))) for name in knobs)
    return SearchSpace("s", every, tuple(parse(text, "f") for text in constraints))


def walked(one: SearchSpace) -> Indices:
    keys = [part.keys for part in enumeration.walked(one, one.constraints)]
    return RowKeys(one).decode(sort_keys(np.concatenate(keys, axis=1)))


def test_rows_are_found_however_knobs_are_bound_and_constraints_cut_before_the_product_is_built() -> None:
    rows = walked(space("abcd", 5, "d + b == 4", "c == d"))
    assert [tuple(row) for row in rows.tolist()] == [(a, b, 4 - b, 4 - b) for a in range(5) for b in range(5)]
    # 50 knobs of 10 choices: only a search that binds d after c after b ... can end
    names = [f"k{n}" for n in range(50)]
    chain = tuple(parse(f"{a} == {b}", "f") for a, b in itertools.pairwise(names))
    long = SearchSpace("s", tuple(Knob(name, tuple(range(10))) for name in names), chain)
    assert long.cartesian == 10**50
    assert np.array_equal(walked(long), np.repeat(np.arange(10)[:, None], 50, axis=1))


def test_large_constraints_and_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = space("abcd", 6, "a <= b", "(b + c) % 3 == d % 3", "a + b + c + d > 4")
    whole = walked(one)
    with monkeypatch.context() as patch:
        patch.setattr("tuner.space.search_space.TABLE_LIMIT", 40)
        assert np.array_equal(walked(one), whole)
    monkeypatch.setattr(enumeration, "BLOCK_ROWS", 7)
    assert np.array_equal(walked(one), whole)
    every = np.stack(np.unravel_index(np.arange(6**4), (6,) * 4), axis=1)
    assert np.array_equal(np.concatenate(list(enumeration.cartesian_blocks(one))), every)


def test_every_combination_looked_at_is_reported_and_first_violations_count_a_row_once() -> None:
    one = space("ab", 6, "a < 2")
    assert sum(part.visits for part in enumeration.walked(one, one.constraints)) == 6 + 2 * 6
    one = space("ab", 3, "a > 0", "b > 0", "a + b > 2")
    assert enumeration.first_violations(one, enumeration.cartesian_blocks(one)).tolist() == [3, 2, 1]
    empty = SearchSpace("s", ())
    assert [block.shape for block in enumeration.cartesian_blocks(empty)] == [(1, 0)]
    assert walked(empty).shape == (1, 0)


def test_possible_needs_one_row_and_an_endless_question_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = space("abcdefghij", 10, "a < b", "a > 8")
    assert enumeration.is_possible(one, one.constraints[:1])
    assert not enumeration.is_possible(one, one.constraints)
    monkeypatch.setattr(enumeration, "VISITS_LIMIT", 100_000)
    endless = space("abcdef", 10, "a + b + c + d + e + f == 99")
    message = "strategy s: no combination of 1000000 was found to be allowed after 100000 partial ones"
    with pytest.raises(UsageError, match=message):
        enumeration.is_possible(endless, endless.constraints)
    with pytest.raises(UsageError, match=message):
        rows_of(endless)


def test_a_sample_draws_every_choice_about_as_often() -> None:
    drawn = enumeration.cartesian_sample(space("ab", 4), 4000, np.random.default_rng(0))
    assert drawn.shape == (4000, 2)
    assert np.bincount(drawn[:, 1]).min() > 850


def keys_of(*sizes: int) -> RowKeys:
    return RowKeys(SearchSpace("s", tuple(Knob(f"k{n}", tuple(range(size))) for n, size in enumerate(sizes))))


@given(st.lists(st.integers(1, 4), max_size=5), st.integers(1, 300))
def test_keys_count_the_product_with_the_last_knob_fastest(sizes: list[int], word_limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "WORD_LIMIT", word_limit)  # more than one word
        patch.setattr(enumeration, "DECODED_ROWS", 5)
        keys = keys_of(*sizes)
        every = np.array(list(itertools.product(*map(range, sizes)))).reshape(math.prod(sizes), len(sizes))
        shuffled = np.random.default_rng(0).permutation(len(every))
        encoded = keys.encode(every[shuffled].astype(np.uint8))
        assert np.array_equal(keys.decode(encoded), every[shuffled])
        assert np.array_equal(keys.decode(sort_keys(encoded)), every)


def test_a_space_that_no_word_numbers_takes_more_words() -> None:
    keys, row = keys_of(*(10,) * 50), np.arange(50, dtype=np.uint8)[np.newaxis] % 10
    assert len(keys.encode(row)) == 3
    assert np.array_equal(keys.decode(keys.encode(row)), row)


@pytest.mark.parametrize(("choices", "wanted"), [(256, np.uint8), (257, np.uint16), (65537, np.uint32)])
def test_rows_are_as_narrow_as_their_choices_allow(choices: int, wanted: type) -> None:
    rows = keys_of(choices, 2).decode(np.array([[2 * choices - 1]], np.uint64))
    assert rows.dtype == wanted
    assert rows.tolist() == [[choices - 1, 1]]


def shrink(patch: pytest.MonkeyPatch, sample_rows: int = 400, grown_limit: int = 2_000) -> None:
    patch.setattr(enumeration, "PILOT_ROWS", 64)
    patch.setattr(enumeration, "SAMPLE_ROWS", sample_rows)
    patch.setattr(enumeration, "GROWN_LIMIT", grown_limit)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


def tuples(rows: Rows) -> list[tuple[int, ...]]:
    return [tuple(row) for row in rows.index.tolist()]


def test_a_set_within_the_limit_is_whole_and_a_sample_of_distinct_rows_the_same_each_time(
    small: None,
) -> None:
    rows = rows_of(space("abcd", 6, "a + b == c + d"), limit=10_000)
    every = itertools.product(range(6), repeat=3)
    assert tuples(rows) == sorted((a, b, c, a + b - c) for a, b, c in every if 0 <= a + b - c < 6)
    assert (rows.total, rows.is_sample) == (len(rows.index), False)
    one = space("abcdef", 6, "a + b == c + d", "e * f % 3 != 1")
    rows = rows_of(one, limit=1000)
    assert rows.is_sample
    assert tuples(rows) == sorted(set(tuples(rows)))
    assert 0 < len(rows.index) <= 400
    assert all(a + b == c + d and e * f % 3 != 1 for a, b, c, d, e, f in tuples(rows))
    assert tuples(rows_of(one, limit=1000)) == tuples(rows)


@settings(max_examples=15)
@given(st.permutations(["a + b == c + d", "e * f % 3 != 1", "a <= e + 2", "f != c"]), st.integers(1, 4))
def test_the_number_of_allowed_combinations_is_estimated(constraints: list[str], count: int) -> None:
    one = space("abcdef", 6, *constraints[:count])
    exact = len(rows_of(one).index)
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        estimated = rows_of(one, limit=100)
    assert estimated.is_sample
    assert exact / 1.7 < estimated.total < exact * 1.7


def test_every_allowed_combination_is_as_likely_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    # a = 0 leaves one value of b, a = 9 leaves ten: a descent that draws a first would favour small a
    one = space("abcd", 10, "b <= a")
    shrink(monkeypatch, 2_000, enumeration.GROWN_LIMIT)
    rows = rows_of(one, limit=1000)
    met = np.bincount(rows.index[:, 0], minlength=10) / len(rows.index)
    assert met == pytest.approx((np.arange(10) + 1) / 55, abs=0.03)


def test_a_sample_has_the_rows_that_come_first_and_those_it_must(small: None) -> None:
    bare = space("abcdef", 6)
    one = replace(bare, preferences=tuple(parse(text, "f") for text in ("a == b", "c == d", "e == f")))
    rows = rows_of(one, limit=1000)
    assert sum(a == b and c == d and e == f for a, b, c, d, e, f in tuples(rows)) == 6**3  # all there are
    assert set(tuples(rows_of(bare, limit=1000))) <= set(tuples(rows))
    assert rows.total == 6**6
    one = space("abcdef", 6)
    always = np.array([[0] * 6, [5] * 6, [1, 2, 3, 4, 5, 0]], np.uint8)
    rows = rows_of(one, 1000, always)
    assert set(map(tuple, always.tolist())) <= set(tuples(rows))
    assert len(set(tuples(rows))) == len(rows.index)
    assert rows.total == 6**6


def test_a_set_with_few_rows_among_very_many_combinations_is_found_whole_and_an_empty_one_is_empty() -> None:
    rules = ("a == b", "c == d and d == e", "f < 1", *(f"{x} > 8" for x in "ghijkl"))
    rows = rows_of(space("abcdefghijkl", 10, *rules))
    assert (len(rows.index), rows.is_sample) == (100, False)
    rows = rows_of(space("ab", 3, "a > 5"))
    assert (rows.index.shape, rows.total) == ((0, 2), 0)


def test_a_space_of_many_knobs_has_a_smaller_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch, 2_000, 4_000)
    for count, rows in ((40, 2_000), (80, 500), (200, 80)):
        narrow = space("ab", 4, "a <= b")
        more = tuple(Knob(f"k{number}", (1, 2, 4, 8)) for number in range(count - 2))
        found = rows_of(replace(narrow, knobs=(*narrow.knobs, *more)))
        assert (len(found.index), found.is_sample) == (rows, True)
