from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.space import enumeration
from tuner.space.enumeration import Rows, rows_of
from tuner.space.expressions import parse
from tuner.space.search_space import Knob, SearchSpace


def space(knobs: str, choices: int, *constraints: str) -> SearchSpace:
    return SearchSpace(
        "s",
        tuple(Knob(name, tuple(range(choices))) for name in knobs),
        tuple(parse(text, "f") for text in constraints),
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes sets of some thousand rows large ones."""
    monkeypatch.setattr(enumeration, "PILOT_ROWS", 64)
    monkeypatch.setattr(enumeration, "SAMPLE_ROWS", 400)
    monkeypatch.setattr(enumeration, "GROWN_LIMIT", 2_000)


def tuples(rows: Rows) -> list[tuple[int, ...]]:
    return [tuple(row) for row in rows.index.tolist()]


def test_a_set_within_the_limit_is_whole_and_sorted(small: None) -> None:
    rows = rows_of(space("abcd", 6, "a + b == c + d"), limit=10_000)
    assert tuples(rows) == sorted(
        (a, b, c, a + b - c) for a in range(6) for b in range(6) for c in range(6) if 0 <= a + b - c < 6
    )
    assert (rows.total, rows.is_sample) == (len(rows.index), False)


def test_a_sample_is_of_distinct_allowed_rows_sorted_and_the_same_each_time(small: None) -> None:
    one = space("abcdef", 6, "a + b == c + d", "e * f % 3 != 1")
    rows = rows_of(one, limit=1000)
    assert rows.is_sample
    assert tuples(rows) == sorted(set(tuples(rows)))
    assert 0 < len(rows.index) <= 400
    assert all(a + b == c + d and e * f % 3 != 1 for a, b, c, d, e, f in tuples(rows))
    assert tuples(rows_of(one, limit=1000)) == tuples(rows)


@settings(deadline=None, max_examples=15)
@given(st.permutations(["a + b == c + d", "e * f % 3 != 1", "a <= e + 2", "f != c"]), st.integers(1, 4))
def test_the_number_of_allowed_combinations_is_estimated(constraints: list[str], count: int) -> None:
    one = space("abcdef", 6, *constraints[:count])
    exact = len(rows_of(one).index)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("PILOT_ROWS", 64), ("SAMPLE_ROWS", 400), ("GROWN_LIMIT", 2_000)):
            patch.setattr(enumeration, name, value)
        estimated = rows_of(one, limit=100)
    assert estimated.is_sample
    assert exact / 1.7 < estimated.total < exact * 1.7


def test_every_allowed_combination_is_as_likely_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    # a = 0 leaves one value of b, a = 9 leaves ten: a descent that draws a first would favour small a
    one = space("abcd", 10, "b <= a")
    monkeypatch.setattr(enumeration, "PILOT_ROWS", 64)
    monkeypatch.setattr(enumeration, "SAMPLE_ROWS", 2_000)
    rows = rows_of(one, limit=1000)
    met = np.bincount(rows.index[:, 0], minlength=10) / len(rows.index)
    assert met == pytest.approx((np.arange(10) + 1) / 55, abs=0.03)


def test_a_sample_has_as_many_rows_of_what_comes_first(small: None) -> None:
    bare = space("abcdef", 6)
    one = replace(bare, preferences=tuple(parse(text, "f") for text in ("a == b", "c == d", "e == f")))
    rows = rows_of(one, limit=1000)
    assert sum(a == b and c == d and e == f for a, b, c, d, e, f in tuples(rows)) == 6**3  # all there are
    assert set(tuples(rows_of(bare, limit=1000))) <= set(tuples(rows))
    assert rows.total == 6**6


def test_a_sample_holds_the_rows_it_must(small: None) -> None:
    one = space("abcdef", 6)
    always = np.array([[0] * 6, [5] * 6, [1, 2, 3, 4, 5, 0]], np.uint8)
    rows = rows_of(one, 1000, always)
    assert set(map(tuple, always.tolist())) <= set(tuples(rows))
    assert len(set(tuples(rows))) == len(rows.index)
    assert rows.total == 6**6


def test_a_set_with_few_rows_among_very_many_combinations_is_found_whole() -> None:
    rows = rows_of(
        space("abcdefghijkl", 10, "a == b", "c == d and d == e", "f < 1", *(f"{x} > 8" for x in "ghijkl"))
    )
    assert (len(rows.index), rows.is_sample) == (100, False)


def test_an_empty_set_is_empty() -> None:
    rows = rows_of(space("ab", 3, "a > 5"))
    assert (rows.index.shape, rows.total) == ((0, 2), 0)


def test_an_enumeration_that_would_not_end_is_refused(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    monkeypatch.setattr(enumeration, "VISITS_LIMIT", 100_000)
    with pytest.raises(
        UsageError,
        match="strategy s: no combination of 1000000 was found to be allowed after 100000 partial ones",
    ):
        rows_of(space("abcdef", 10, "a + b + c + d + e + f == 99"))


def many(count: int) -> tuple[Knob, ...]:
    return tuple(Knob(f"k{number}", (1, 2, 4, 8)) for number in range(count))


def test_a_space_of_many_knobs_has_a_smaller_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumeration, "SAMPLE_ROWS", 2_000)
    monkeypatch.setattr(enumeration, "PILOT_ROWS", 64)
    monkeypatch.setattr(enumeration, "GROWN_LIMIT", 4_000)
    for knobs, rows in ((40, 2_000), (80, 500), (200, 80)):
        wide = replace(space("ab", 4, "a <= b"), knobs=(*space("ab", 4).knobs, *many(knobs - 2)))
        found = rows_of(wide)
        assert (len(found.index), found.is_sample) == (rows, True)
