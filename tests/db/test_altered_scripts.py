"""A script whose text was altered in the database: one error wherever it would be used, and never run."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tests.tuning.fakes import present
from tuner.core.errors import UsageError
from tuner.core.queries import TrialQuery
from tuner.db.store import Store
from tuner.results.exported_trial import exported
from tuner.tuning.events import Interruption
from tuner.tuning.run import resume

ALTERED = r"^trial \d+: its stored script was altered: the text does not match its hash [0-9a-f]{12}"


@pytest.fixture
def altered(tmp_path: Path) -> str:
    """Returns a database in which each stored script has one more character."""
    database = str(tmp_path / "tuner.db")
    with Store.open(database) as store:
        fakes.tune(store, fakes.backends())
    with closing(sqlite3.connect(database)) as connection, connection:
        (kind,) = {type(text) for (text,) in connection.execute("select text from script")}
        tail = "' '" if kind is str else "x'20'"
        connection.execute(
            f"update script set text = cast(text || {tail} as {'text' if kind is str else 'blob'})"
        )
    return database


def export(store: Store) -> object:
    (best, *_) = store.trials(TrialQuery(run=1, status="measured", sort="median"))
    return exported(fakes.backends(), store, best, "script", None)


def retime(store: Store) -> object:
    return resume(1, fakes.backends(), store, Interruption(), retime=True)


@pytest.mark.parametrize("use", [export, retime])
def test_an_altered_script_is_an_error_where_it_would_be_used(
    altered: str, use: Callable[[Store], object]
) -> None:
    with Store.open(altered) as store, pytest.raises(UsageError, match=ALTERED):
        use(store)


@pytest.mark.parametrize("command", ["export --trial 1", "show 1", "check --best", "show run:1"])
def test_commands_say_it_in_one_line(altered: str, command: str) -> None:
    done = Tuner(Path(altered), fakes.backends())(command)
    assert done.code != 0
    said = " ".join((done.out + done.err).split())  # lines are wrapped
    assert said.count("its stored script was altered") == 1


def test_a_list_of_trials_shows_no_script_and_a_merge_takes_none(altered: str, tmp_path: Path) -> None:
    with Store.open(altered) as store:
        trials = store.trials(TrialQuery())
        assert all(each.is_altered for each in trials)
        assert present(trials[0].best_s)
    with (
        Store.open(str(tmp_path / "other.db")) as other,
        pytest.raises(UsageError, match="script was altered"),
    ):
        other.merge(altered)
