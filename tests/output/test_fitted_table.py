import pytest

from tuner.output.fitted_table import table_lines, varying_columns

HEADER = ("id", "problem", "share", "what")
ROWS = [("1", "matmul 8x8x8", "12.5", "one two three four five six"), ("10", "matmul 16x8x8", "7", "one")]
WIDE = 53  # of all of it
NOTE = "not shown for want of width: share (--json tells all)"


def test_columns_are_aligned_and_numbers_stand_right() -> None:
    assert table_lines(("id", "name"), [("1", "one"), ("10", "t")]) == ["id  name", " 1  one", "10  t"]


def test_a_table_of_nothing_is_its_header() -> None:
    assert table_lines(("id", "name"), []) == ["id  name"]


def test_columns_that_say_the_same_everywhere_become_a_line() -> None:
    header, rows, shared = varying_columns(("id", "op"), [("1", "a"), ("2", "a")], ("id", "op"))
    assert (header, rows, shared) == (("id",), [("1",), ("2",)], ["all of op a"])
    assert varying_columns(("id", "op"), [("1", "a"), ("2", "a")], ("id",))[2] == []
    assert varying_columns(("id", "op"), [("1", "a")], ("id", "op")) == (("id", "op"), [("1", "a")], [])


def test_a_table_that_fits_or_goes_to_a_file_is_whole() -> None:
    whole = table_lines(HEADER, ROWS, None, ("share",))
    assert max(map(len, whole)) == WIDE
    assert table_lines(HEADER, ROWS, WIDE, ("share",)) == whole


def test_long_cells_go_on_in_the_next_line() -> None:
    assert table_lines(HEADER, ROWS, WIDE - 1) == [
        "id  problem        share  what",
        " 1  matmul 8x8x8    12.5  one two three four five",
        "                          six",
        "10  matmul 16x8x8      7  one",
    ]


def test_a_column_that_can_be_spared_goes_first_and_a_line_says_so() -> None:
    *lines, note = table_lines(HEADER, ROWS, WIDE - 4, ("share", "problem"))
    assert lines[0].split() == ["id", "problem", "what"]
    assert note == NOTE
    assert table_lines(HEADER, ROWS, WIDE - 4, ("nothing", "share"))[-1] == NOTE


@pytest.mark.parametrize("columns", [80, 60, 40, 26])
def test_words_are_broken_before_a_line_is_too_long_and_numbers_never(columns: int) -> None:
    rows = [("123456789", "x" * 100, "y" * 30), ("2", "z", "")]
    lines = table_lines(("id", "long", "longer"), rows, columns)
    assert max(map(len, lines)) <= columns
    assert "123456789" in lines[1]
    assert sum(line.count("x") for line in lines) == 100
