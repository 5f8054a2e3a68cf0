import numpy as np

from tuner.search.configurations import RowTable, alignments
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace


def test_values_rank_by_the_power_of_two_that_divides_them() -> None:
    assert alignments((16, 32, 48, 64, 80)) == (0, 1, 0, 2, 0)
    assert alignments((0, 3, 4, 6)) == (0, 0, 2, 1)  # 0 is "off", not divisible by everything


def test_what_the_value_reports_is_not_reported_twice() -> None:
    assert alignments((1, 2, 4, 8)) == ()
    assert alignments((1, 3, 5)) == ()
    assert alignments((2, 3)) == ()


def test_texts_and_negative_numbers_have_none() -> None:
    assert alignments(("a", "b", "c")) == ()
    assert alignments((-4, 3, 8, 5)) == ()


def test_a_table_gets_a_column_for_each_knob_that_has_them() -> None:
    spaces = (
        SearchSpace("s", (Knob("a", (16, 32, 48)), Knob("b", (1, 2)))),
        SearchSpace("t", (Knob("b", (1, 2)),)),
    )
    table = RowTable.of(FeasibleSet.of(spaces))
    given = table.with_alignments()
    assert len(given.columns) == len(table.columns) + 1
    assert given.columns[-1].levels == 2
    assert given.codes[:, -1].tolist() == [0, 0, 1, 1, 0, 0, -1, -1]
    assert np.array_equal(given.codes[:, :-1], table.codes)


def test_a_table_without_them_stays_as_it_is() -> None:
    table = RowTable.of(FeasibleSet.of((SearchSpace("s", (Knob("a", (1, 2, 4)),)),)))
    assert table.with_alignments() is table
