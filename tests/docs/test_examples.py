"""Every command of README, pages and ``--help`` is understood; those that tune, ask and export are run.

They run in the order of their page, on fakes in place of compiler and clock, beside a database of seven runs.
What needs a page's files, another machine or MLIR runs in tests of its own.
"""

import contextlib
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Tuner
from tests.docs.guide import ROOT, blocks_of
from tests.tuning import fakes
from tuner.cli import main

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
COMMAND = re.compile(r"(?:python -m )?tuner (.*)")
NEXT_EXAMPLE = re.compile(r", (?:or|then in CI:) tuner ")
RUNS = 7  # in the database: README names run 7 and trial 42
NEEDS_MORE = {
    "fleet",
    "bundle",
    "measure",
    "run",
    "lower",
    "ptx",
    "dashboard",
    "verify-resume",
    "record-space",
}


@dataclass(frozen=True)
class Example:
    """A command as it is printed somewhere."""

    place: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place}: {shlex.join(self.words)}"


def examples_of_pages() -> Iterator[Example]:
    """Yields the commands of the shell blocks of all pages."""
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            for line in block.text.replace("\\\n", " ").splitlines() if block.language == "sh" else ():
                if found := COMMAND.match(line):
                    words = shlex.split(found[1].split(" | ")[0], comments=True)
                    yield Example(page.name, tuple(words))


def examples_of_help() -> Iterator[Example]:
    """Yields the commands behind 'Example:' of each command's help."""
    for name, command in main.commands.items():
        (text,) = re.findall(r"Example: tuner (.*)", " ".join((command.help or "").split()))
        for example in NEXT_EXAMPLE.split(text):
            yield Example(f"{name} --help", tuple(shlex.split(example)))


EXAMPLES = (*examples_of_pages(), *examples_of_help())


def understood(example: Example) -> None:
    """Parses the words as the command line does, without doing anything. Raises for those that are wrong."""
    command: click.Command = main
    words = list(example.words)
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    with contextlib.redirect_stdout(None), contextlib.suppress(click.exceptions.Exit):  # of --help
        command.make_context(command.name, words)


def is_run(example: Example) -> bool:
    """Tells whether fakes can do it: a candidate of a shipped strategy is none of theirs."""
    return example.words[0] not in NEEDS_MORE and example.words[:2] != ("explain", "matmul")


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_is_understood(example: Example) -> None:
    understood(example)


@pytest.mark.parametrize("words", [("history", "--shap", "8x8x8"), ("histoire",), ("db", "inform")])
def test_a_mistyped_example_is_found(words: tuple[str, ...]) -> None:
    with pytest.raises((click.UsageError, KeyError)):
        understood(Example("here", words))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the database that the examples ask."""
    tuner = Tuner(tmp_path_factory.mktemp("examples") / "results.db", fakes.composition())
    for seed in range(RUNS):
        words = ("--trials", "20", "--sampler", "random", "--seed", str(seed))
        assert tuner("tune", "matmul", "512x512x512", *words).code == 0
    return tuner.database


@pytest.mark.parametrize("place", ["README.md", "own-schedules.md", "gate.md", "help"])
def test_the_examples_of_a_page_run_one_after_another(
    place: str, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copy(results, tmp_path / "results.db")
    tuner = Tuner(tmp_path / "results.db", fakes.composition())
    run = [example for example in EXAMPLES if example.place.endswith(place) and is_run(example)]
    assert run
    for example in run:
        done = tuner(*example.words)
        assert done.code == 0, f"{example}\n{done.err}"
