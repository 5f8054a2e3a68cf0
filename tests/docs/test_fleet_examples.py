"""The examples of ``tuner fleet`` run as printed, on a server of these tests in place of the named one."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.docs.test_examples import EXAMPLES, Example
from tests.tuning import fakes
from tuner.fleet.server import session

SCRIPTS = [each for each in EXAMPLES if each.words[:2] == ("fleet", "script")]
DATABASE = re.compile(r"postgresql://\S+")
ASKED = ("up", "status")  # those that end by themselves; nodes and runs are in tests/cli/commands


@pytest.fixture
def tuner(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", fakes.composition())


@pytest.mark.parametrize("example", SCRIPTS, ids=str)
def test_a_script_is_printed(example: Example, tuner: Tuner) -> None:
    done = tuner(*example.words)
    assert done.code == 0, done.err
    assert re.search(r"tuner\W+fleet\W+worker", done.out)


@pytest.mark.postgres
def test_the_page_sets_a_fleet_up_and_asks_how_it_is(tuner: Tuner, postgres_server: str) -> None:
    with session(postgres_server) as connection:
        connection.execute("CREATE DATABASE of_the_page")
    url = postgres_server.replace("/postgres?", "/of_the_page?")
    asked = [each for each in EXAMPLES if each.place == "fleet.md" and each.words[1] in ASKED]
    assert [each.words[1] for each in asked] == ["up", "status"]
    for example in asked:
        done = tuner(*(DATABASE.sub(url, word) for word in example.words))
        assert done.code == 0, f"{example}\n{done.err}"
