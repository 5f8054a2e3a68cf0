import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.candidate import Candidate, Value
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet, nearest_row, steps_from
from tuner.space.search_space import Knob, SearchSpace

TILES = Knob("tile", (64, 8, 16, 32))  # as a file may list them: in no order
ORDERS = Knob("order", ("ij", "ji"))
SPACE = SearchSpace("s", (TILES, Knob("depth", (0, 1, 2)), ORDERS), (parse("tile * depth <= 32", "f"),))
OTHER = SearchSpace("other", (Knob("x", (1, 2)),))
FEASIBLE = FeasibleSet.of((OTHER, SPACE))


def nearest(strategy: str, **values: Value) -> dict[str, Value] | None:
    row = nearest_row(Candidate.of(strategy, values), FEASIBLE)
    return None if row is None else dict(FEASIBLE.candidate(row).choices)


@pytest.mark.parametrize("row", range(FEASIBLE.rows))
def test_a_feasible_candidate_is_its_own_row(row: int) -> None:
    assert nearest_row(FEASIBLE.candidate(row), FEASIBLE) == row


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"tile": 64, "depth": 1, "order": "ji"}, {"tile": 64, "depth": 0, "order": "ji"}),
        ({"tile": 17, "depth": 2, "order": "ij"}, {"tile": 16, "depth": 2, "order": "ij"}),
        ({"tile": 1000, "depth": 0, "order": "ij"}, {"tile": 64, "depth": 0, "order": "ij"}),
        ({"tile": 8, "depth": 2, "order": "ji", "gone": 4}, {"tile": 8, "depth": 2, "order": "ji"}),
        ({"tile": 8, "depth": 2}, {"tile": 8, "depth": 2, "order": "ij"}),
    ],
)
def test_what_is_not_feasible_becomes_the_nearest_that_is(
    values: dict[str, Value], expected: dict[str, Value]
) -> None:
    assert nearest("s", **values) == expected


def test_only_a_candidates_own_row_may_be_one_that_comes_last() -> None:
    space = replace(SPACE, preferences=(parse("tile != 16", "f"),))
    feasible = FeasibleSet.of((OTHER, space))
    demoted = Candidate.of("s", {"tile": 16, "depth": 2, "order": "ij"})
    row, surrounding = nearest_row(demoted, feasible), nearest_row(replace_tile(demoted, 17), feasible)
    assert row is not None
    assert surrounding is not None
    assert feasible.candidate(row) == demoted
    assert dict(feasible.candidate(surrounding).choices) == {"tile": 8, "depth": 2, "order": "ij"}


def replace_tile(candidate: Candidate, tile: int) -> Candidate:
    return Candidate.of(candidate.strategy, {**dict(candidate.choices), "tile": tile})


def test_another_strategy_has_no_row() -> None:
    assert nearest("unknown", tile=8) is None


def test_steps_count_choices_and_parts_of_a_step_by_ratio() -> None:
    assert steps_from(8, TILES).tolist() == [3, 0, 1, 2]
    assert steps_from("ij", ORDERS).tolist() == [0, 1]
    assert 0.4 < steps_from(22, TILES)[2] < 0.6


@given(st.sampled_from(TILES.choices), st.sampled_from((0, 1, 2)), st.sampled_from(ORDERS.choices))
def test_no_feasible_row_is_nearer(tile: int, depth: int, order: str) -> None:
    found = nearest("s", tile=tile, depth=depth, order=order)
    assert found is not None
    ranks = {8: 0, 16: 1, 32: 2, 64: 3}

    def steps(a: int, b: int, c: str) -> int:
        return abs(ranks[a] - ranks[tile]) + abs(b - depth) + (c != order)

    allowed = itertools.product(ranks, (0, 1, 2), ("ij", "ji"))
    least = min(steps(a, b, c) for a, b, c in allowed if a * b <= 32)
    assert steps(int(found["tile"]), int(found["depth"]), str(found["order"])) == least
