import numpy as np

from tests.search.tasks import grid, line
from tuner.search.configurations import Column, RowTable
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

NUMBER = Column(5, is_ordinal=True, is_strategy=False)
TEXT = Column(3, is_ordinal=False, is_strategy=False)


def test_numbers_are_as_far_apart_as_their_ranks_and_a_missing_one_is_in_the_middle() -> None:
    assert NUMBER.differences(1).tolist() == [0.25, 0, 0.25, 0.5, 0.75, 0.25]
    assert NUMBER.differences(-1).tolist() == [0.5, 0.25, 0, 0.25, 0.5, 0]


def test_texts_are_the_same_or_different_and_a_missing_one_is_between() -> None:
    assert TEXT.differences(1).tolist() == [1, 0, 1, 0.5]
    assert TEXT.differences(-1).tolist() == [0.5, 0.5, 0.5, 0]


def test_columns_with_one_value_are_left_out() -> None:
    space = SearchSpace("s", (Knob("one", (7,)), Knob("a", (1, 2, 4)), Knob("o", ("x", "y"))))
    table = RowTable.of(FeasibleSet.of((space,)))
    assert table.columns == (Column(3, True, False), Column(2, False, False))
    assert table.codes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    assert len(RowTable.of(FeasibleSet.of((SearchSpace("s", ()),))).columns) == 0


def test_differences_of_rows_add_up_over_the_columns() -> None:
    table = RowTable.of(FeasibleSet.of((line(3, "s"), grid("ab", 3, "t"))))
    far = table.differences(table.codes[0])  # s(a=0)
    assert far[:3].tolist() == [0, 0.5, 1]
    assert far[3:6].tolist() == [1.5, 1, 1.5]  # another strategy, b is missing here
    assert (table.part(np.array([4, 0])).differences(table.codes[0]) == far[[4, 0]]).all()


def test_squares_are_distances_of_points_so_that_correlations_are_covariances() -> None:
    spaces = (grid("ab", 3, "s"), SearchSpace("t", (Knob("a", (0, 1, 2)), Knob("o", ("x", "y", "z")))))
    squares = RowTable.of(FeasibleSet.of(spaces)).squares().sum(axis=0)
    count = len(squares)
    centring = np.eye(count) - 1 / count
    gram = -0.5 * centring @ squares @ centring  # of the points, if there are any (Schoenberg)
    assert np.linalg.eigvalsh(gram).min() > -1e-6
    assert (np.diag(squares) == 0).all()
