import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.space.recorded.recording import Points, Raw, feasible_set_of

ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=40)


def points(values: list[tuple[Raw, ...]], listed: tuple[tuple[Raw, ...], ...]) -> Points:
    names = tuple("xyz"[: len(listed)])
    return Points("s", names, listed, values, list(range(len(values))))


@given(ROWS)
def test_every_point_is_a_row_and_of_equal_ones_the_last_counts(rows: list[tuple[int, str]]) -> None:
    feasible, entries = feasible_set_of((points([*rows], ((), ())),))
    assert feasible.rows == len(set(rows)) == len(entries)
    for row, entry in enumerate(entries):
        candidate = feasible.candidate(row)
        assert tuple(dict(candidate.choices).values()) == rows[entry]
        assert feasible.row_of(candidate) == row
        assert entry == max(place for place, other in enumerate(rows) if other == rows[entry])


def test_choices_keep_the_order_that_the_file_lists() -> None:
    feasible, _ = feasible_set_of((points([(4, "m"), (8, "a"), (2, "z")], ((8, 2), ())),))
    x, y = feasible.spaces[0].knobs
    assert x.choices == (8, 2, 4)  # listed, then what was met beside
    assert y.choices == ("a", "m", "z")


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ((True, False), (0, 1)),
        ((1.0, 2.0), (1, 2)),
        ((0.5, 1.0), ("0.5", "1.0")),
        ((1, "auto"), ("1", "auto")),
    ],
)
def test_a_knob_takes_whole_numbers_or_texts(raw: tuple[Raw, ...], plain: tuple[Raw, ...]) -> None:
    feasible, _ = feasible_set_of((points([(value,) for value in raw], ((),)),))
    assert feasible.spaces[0].knobs[0].choices == plain


@pytest.mark.parametrize("listed", [(), ([1, 2],)])
def test_a_knob_that_is_a_list_is_refused(listed: tuple[Raw, ...]) -> None:
    with pytest.raises(UsageError, match=r"knob 'x': found .*, allowed numbers and printable texts"):
        feasible_set_of((points([([1, 2],)], (listed,)),))  # type: ignore[list-item]


def test_a_knob_of_too_many_values_is_refused() -> None:
    feasible, _ = feasible_set_of((points([(value,) for value in range(4096)], ((),)),))
    assert feasible.rows == 4096
    with pytest.raises(UsageError, match="knob 'x': found 4097 different values, allowed 4096"):
        feasible_set_of((points([(value,) for value in range(4097)], ((),)),))


def test_a_strategy_without_knobs_is_one_point() -> None:
    feasible, entries = feasible_set_of((points([(), ()], ()),))
    assert (feasible.rows, entries) == (1, (1,))


def test_strategies_follow_one_another() -> None:
    second = Points("t", ("x",), ((),), [(3,), (1,)], [7, 9])
    feasible, entries = feasible_set_of((points([(5,)], ((),)), second))
    assert [feasible.candidate(row).text for row in range(3)] == ["s(x=5)", "t(x=1)", "t(x=3)"]
    assert entries == (0, 9, 7)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, "\ud800", "\x1b[31m", "\0"])
def test_what_no_knob_can_take_is_refused(value: Raw) -> None:
    with pytest.raises(UsageError, match=r"knob 'x': found .*, allowed numbers and printable texts"):
        feasible_set_of((points([(value,), (1,)], ((),)),))
