from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from tuner.cli import main
from tuner.cli.main import HELP_COLUMNS, Commands, example_lines


def _text(group: Commands = main, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield names
    for name, command in group.all_commands().items():
        yield from _text(command, (*names, name)) if isinstance(command, Commands) else ((*names, name),)


def help_of(options: tuple[str, ...]) -> str:
    """Returns what a command's ``--help`` prints in a terminal."""
    return CliRunner().invoke(main, [*options, "--help"], terminal_width=HELP_COLUMNS).output


@pytest.mark.parametrize("options", tuple(_text()), ids=" ".join)
def test_help_fits_a_terminal_and_reports_summaries_whole(options: tuple[str, ...]) -> None:
    text = help_of(options)
    assert max(map(len, text.splitlines())) <= HELP_COLUMNS
    assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("examples", "lines"),
    [
        ("tuner show 42", ["Example: tuner show 42"]),
        ("tuner show 42 --run 3", ["Example:", "  tuner show 42 --run 3"]),
        ("tuner show 42,\n or tuner show run:3", ["Examples:", "  tuner show 42", "  tuner show run:3"]),
        ("tuner history --limit 10 --best", ["Example:", "  tuner history --limit 10 \\", "      --best"]),
        ("tuner explain 'a(b=1, c=2)' -x", ["Example:", "  tuner explain \\", "      'a(b=1, c=2)' -x"]),
    ],
)
def test_examples_are_lines_to_copy(examples: str, lines: list[str]) -> None:
    assert example_lines(examples, 29) == lines
