"""Which database is meant: the one named, that of the environment, the user's own."""

from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.results.database_name import database_text, naming_database, which_database


def test_one_that_is_named_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNER_DB", "other.db")
    assert which_database("named.db") == "named.db"
    assert which_database(Path("named.db")) == "named.db"


def test_an_empty_name_is_not_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNER_DB", "other.db")
    assert which_database("") == ""


def test_a_number_names_none() -> None:
    with pytest.raises(UsageError, match=r"^database: found 3, allowed a file's path or a URL$"):
        which_database(3)  # type: ignore[arg-type]


def test_without_a_name_it_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNER_DB", "other.db")
    assert which_database(None) == "other.db"


@pytest.mark.parametrize("value", [None, ""])
def test_without_either_it_is_in_the_users_data_directory(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("TUNER_DB", raising=False)
    if value is not None:
        monkeypatch.setenv("TUNER_DB", value)
    assert which_database(None).endswith("tuner/tuner.db")


@pytest.mark.parametrize(
    ("named", "options"),
    [
        (None, ""),
        ("a b.db", " --db 'a b.db'"),
        (Path("a.db"), " --db a.db"),
        ("me@home.db", " --db me@home.db"),
        ("postgresql://me@host/results", " --db postgresql://me@host/results"),
        ("postgresql://me:secret@host/results", " --db URL"),
        ("postgresql://me:sec@ret@host/results", " --db URL"),
        ("postgresql://me@host/results?password=secret", " --db URL"),
        ("postgresql:///results?host=host&user=me&password=secret", " --db URL"),
    ],
)
def test_the_next_command_names_it_without_a_password(named: str | Path | None, options: str) -> None:
    assert database_text(named) == options


def test_the_advice_of_an_error_names_it() -> None:
    with pytest.raises(UsageError, match=r"nothing; tuner tune --db a\.db$"), naming_database("a.db"):
        raise UsageError("nothing", "tuner tune")
    with pytest.raises(UsageError, match=r"nothing; tuner tune$"), naming_database(None):
        raise UsageError("nothing", "tuner tune")
    with pytest.raises(UsageError, match=r"^nothing$"), naming_database("a.db"):
        raise UsageError("nothing")
