import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.space import enumeration
from tuner.space.enumeration import Indices, RowKeys, sort_keys
from tuner.space.expressions import parse
from tuner.space.search_space import Knob, SearchSpace


def space(knobs: str, choices: int, *constraints: str) -> SearchSpace:
    return SearchSpace(
        "s",
        tuple(Knob(name, tuple(range(choices))) for name in knobs),
        tuple(parse(text, "f") for text in constraints),
    )


def rows_of(one: SearchSpace) -> Indices:
    keys = [part.keys for part in enumeration.walked(one, one.constraints)]
    return RowKeys(one).decode(sort_keys(np.concatenate(keys, axis=1)))


def test_rows_are_found_however_knobs_are_bound() -> None:
    rows = rows_of(space("abcd", 5, "d + b == 4", "c == d"))
    assert [tuple(row) for row in rows.tolist()] == [(a, b, 4 - b, 4 - b) for a in range(5) for b in range(5)]


def test_constraints_cut_before_the_product_is_built() -> None:
    # 50 knobs of 10 choices: only a search that binds d after c after b ... can end
    names = [f"k{n}" for n in range(50)]
    chain = tuple(parse(f"{a} == {b}", "f") for a, b in itertools.pairwise(names))
    long = SearchSpace("s", tuple(Knob(name, tuple(range(10))) for name in names), chain)
    assert long.cartesian == 10**50
    assert np.array_equal(rows_of(long), np.repeat(np.arange(10)[:, None], 50, axis=1))


def test_a_constraint_with_too_many_combinations_for_a_table_holds_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = space("abcd", 6, "a <= b", "(b + c) % 3 == d % 3", "a + b + c + d > 4")
    whole = rows_of(one)
    monkeypatch.setattr("tuner.space.search_space.TABLE_LIMIT", 40)
    assert np.array_equal(rows_of(one), whole)


def test_blocks_smaller_than_the_set_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = space("abcd", 6, "a <= b", "(b + c) % 3 == d % 3")
    whole = rows_of(one)
    monkeypatch.setattr(enumeration, "BLOCK_ROWS", 7)
    assert np.array_equal(rows_of(one), whole)
    assert np.array_equal(
        np.concatenate(list(enumeration.cartesian_blocks(one))),
        np.stack(np.unravel_index(np.arange(6**4), (6,) * 4), axis=1),
    )


def test_every_combination_looked_at_is_reported() -> None:
    one = space("ab", 6, "a < 2")
    assert sum(part.visits for part in enumeration.walked(one, one.constraints)) == 6 + 2 * 6


def test_possible_needs_one_row_only() -> None:
    one = space("abcdefghij", 10, "a < b", "a > 8")
    assert enumeration.is_possible(one, one.constraints[:1])
    assert not enumeration.is_possible(one, one.constraints)


def test_a_question_that_would_not_be_answered_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "VISITS_LIMIT", 100_000)
    one = space("abcdef", 10, "a + b + c + d + e + f == 99")
    with pytest.raises(UsageError, match="strategy s: no combination of "):
        enumeration.is_possible(one, one.constraints)


def test_a_sample_draws_every_choice_about_as_often() -> None:
    drawn = enumeration.cartesian_sample(space("ab", 4), 4000, np.random.default_rng(0))
    assert drawn.shape == (4000, 2)
    assert np.bincount(drawn[:, 1]).min() > 850


def test_first_violations_count_a_row_once() -> None:
    one = space("ab", 3, "a > 0", "b > 0", "a + b > 2")
    assert enumeration.first_violations(one, enumeration.cartesian_blocks(one)).tolist() == [3, 2, 1]


def test_a_space_without_knobs_has_one_combination() -> None:
    empty = SearchSpace("s", ())
    assert [block.shape for block in enumeration.cartesian_blocks(empty)] == [(1, 0)]
    assert rows_of(empty).shape == (1, 0)


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
    keys = keys_of(*(10,) * 50)
    row = np.arange(50, dtype=np.uint8)[np.newaxis] % 10
    assert len(keys.encode(row)) == 3
    assert np.array_equal(keys.decode(keys.encode(row)), row)


@pytest.mark.parametrize(("choices", "wanted"), [(256, np.uint8), (257, np.uint16), (65537, np.uint32)])
def test_rows_are_as_narrow_as_their_choices_allow(choices: int, wanted: type) -> None:
    rows = keys_of(choices, 2).decode(np.array([[2 * choices - 1]], np.uint64))
    assert rows.dtype == wanted
    assert rows.tolist() == [[choices - 1, 1]]
