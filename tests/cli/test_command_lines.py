import itertools
import json
from pathlib import Path

import pytest

from tests.cli import command_lines
from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tuner.cli import main

COUNT = 120  # of the lines; ``python -m tests.cli.command_lines --count 2000`` runs more


@pytest.mark.slow
def test_every_command_line_ends_in_a_result_or_one_clear_line() -> None:
    assert list(command_lines.complaints(COUNT, seed=1)) == []


def test_the_lines_of_a_seed_are_always_the_same_and_name_every_command_but_those_left_out() -> None:
    lines, again = (tuple(itertools.islice(command_lines.command_lines(7), 100)) for _ in range(2))
    assert lines == again
    assert {options[0] for options in lines} == set(main.all_commands()) - command_lines.LEFT_OUT


def test_a_line_that_ends_in_a_defect_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = Tuner(tmp_path / "results.db", fakes.backends())
    assert command_lines.complaint(("history",), tuner) == ""
    assert command_lines.complaint(("history", "--status", "odd"), tuner) == ""
    monkeypatch.setattr("tuner.results.past_runs.past_trials", lambda *_: 1 / 0)
    assert "defect: ZeroDivisionError" in command_lines.complaint(("history",), tuner)


def test_a_json_flag_that_prints_none_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = Tuner(tmp_path / "results.db", fakes.backends())
    assert command_lines.complaint(("history", "--json"), tuner) == ""
    monkeypatch.setattr(json, "dumps", lambda *_, **__: "none")
    assert "--json printed" in command_lines.complaint(("history", "--json"), tuner)
