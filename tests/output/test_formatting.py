import pytest

from tuner.output.formatting import (
    count_text,
    interval_text,
    knobs_line,
    one_line,
    seconds_text,
    speed_text,
    wrapped,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.3456, "12.35 s"),
        (1.0, "1 s"),
        (0.0123456, "12.35 ms"),
        (1.5e-5, "15 us"),
        (2e-8, "20 ns"),
        (0.0, "0 ns"),
    ],
)
def test_seconds_have_a_unit_that_suits_them(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_an_interval_has_two_ends() -> None:
    assert interval_text((1e-3, 2e-3)) == "1 ms .. 2 ms"


def test_a_strategy_without_knobs_has_none() -> None:
    assert knobs_line((("x", 1), ("order", "mnk"))) == "knobs     x=1 order=mnk"
    assert knobs_line(()) == "knobs     none"


def test_a_speed_that_is_not_known_is_a_dash() -> None:
    assert speed_text(None) == "-"
    assert speed_text(123.456) == "123.5 GFLOP/s"


def test_counts_agree_with_their_noun() -> None:
    assert [count_text(count, "trial") for count in (0, 1, 2)] == ["0 trials", "1 trial", "2 trials"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("two\n  lines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred \u202eüber 核", "\\x1b[31mred \\u202eüber 核"),
        ("x" * 2001, "x" * 2000 + "..."),
    ],
)
def test_a_message_is_one_line_that_moves_no_terminal(text: str, line: str) -> None:
    assert one_line(text) == line


def test_lines_of_a_summary_end_at_80_columns_below_their_text() -> None:
    told = (
        "tied      with 25 (-0.0%), 4 (-0.0%), 16 (+0.0%): not shown to differ by more than noise; and so on"
    )
    command = f"next      tuner export --trial 7 -o {'long/' * 20}best.mlir"
    first, second, kept = wrapped([told, command])
    assert first == told[: len(first)]
    assert 70 < len(first) <= 80
    assert second == " " * 10 + told[len(first) + 1 :]
    assert kept == command
    assert wrapped([f"code      sha256 {'0' * 80}"])[-1] == " " * 10 + "0" * 80


def test_a_version_is_no_command() -> None:
    assert max(map(len, wrapped([f"compiler A: tuner 0.1.0, {'LLVM 23 ' * 20}"]))) <= 80


def test_a_line_is_as_narrow_as_the_terminal_and_whole_in_a_pipe() -> None:
    line = "word " * 30
    assert max(map(len, wrapped([line], 40))) <= 40
    assert wrapped([line], None) == [line]
