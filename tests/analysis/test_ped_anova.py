import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.analysis.importance import importances
from tuner.core.candidate import Value

POINTS: list[dict[str, Value]] = [
    {"a": a, "b": b, "c": c, "fixed": 1} for a, b, c in itertools.product(range(8), range(4), "xy")
]


def of(point: dict[str, Value]) -> float:
    return 1 + float(point["a"]) + 0.1 * float(point["b"])


def test_the_knob_that_decides_counts_most_and_one_without_effect_least() -> None:
    found = importances(POINTS, [of(point) for point in POINTS])
    assert list(found) == ["a", "b", "c", "fixed"]
    assert found["a"] > 0.7
    assert found["a"] > found["b"] > found["c"] > found["fixed"] == 0


@given(st.permutations(POINTS))
def test_the_order_of_points_means_nothing_where_times_differ(points: list[dict[str, Value]]) -> None:
    def unlike(point: dict[str, Value]) -> float:
        return of(point) + (0.01 if point["c"] == "x" else 0)

    expected = importances(POINTS, [unlike(point) for point in POINTS])
    assert importances(points, [unlike(point) for point in points]) == pytest.approx(expected)


@given(st.lists(st.floats(0.1, 10), min_size=len(POINTS), max_size=len(POINTS)))
def test_shares_add_up_to_one(times_s: list[float]) -> None:
    found = importances(POINTS, times_s)
    assert sum(found.values()) == pytest.approx(1)
    assert min(found.values()) >= 0


def test_without_points_or_choices_nothing_is_important() -> None:
    assert importances([], []) == {}
    assert importances([{"a": 1}] * 8, [1.0] * 8) == {"a": 0.0}
