"""Drills: the file of a database goes away while it is written to."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tuner.core.errors import UsageError
from tuner.db.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(f"sqlite:///{tmp_path / 'x.db'}")
    with opened.transaction() as connection:
        connection.execute(sa.text("CREATE TABLE kept (number INTEGER)"))
    yield opened
    opened.close()


def write(database: Database, number: int) -> None:
    with database.transaction() as connection:
        connection.execute(sa.text("INSERT INTO kept VALUES (:number)"), {"number": number})


def numbers_in(file: Path) -> list[int]:
    connection = sqlite3.connect(file)
    try:
        return [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number")]
    finally:
        connection.close()


def delete(tmp_path: Path) -> None:
    for file in tmp_path.glob("x.db*"):
        file.unlink()


def test_a_deleted_file_is_noticed_at_the_next_write_and_all_is_rescued(
    database: Database, tmp_path: Path
) -> None:
    write(database, 1)
    delete(tmp_path)
    rescued = tmp_path / "x.db.rescue-1"
    reason = f"x.db: its file was deleted or replaced; what was stored is in {rescued}"
    with pytest.raises(UsageError, match=re.escape(reason)):
        write(database, 2)
    assert numbers_in(rescued) == [1, 2]
    assert not (tmp_path / "x.db").exists()


def test_a_file_in_the_place_of_which_is_another_is_not_written_over(
    database: Database, tmp_path: Path
) -> None:
    write(database, 1)
    delete(tmp_path)
    (tmp_path / "x.db").write_text("another's")
    (tmp_path / "x.db.rescue-1").write_text("of an earlier run")
    with pytest.raises(UsageError, match=r"what was stored is in .*x\.db\.rescue-2$"):
        write(database, 2)
    assert numbers_in(tmp_path / "x.db.rescue-2") == [1, 2]
    assert (tmp_path / "x.db").read_text() == "another's"


def test_a_directory_that_is_gone_leaves_one_line(database: Database, tmp_path: Path) -> None:
    delete(tmp_path)
    moved = tmp_path.with_name("elsewhere")
    tmp_path.rename(moved)
    try:
        with pytest.raises(UsageError, match=r"what was stored could not be rescued: .*No such file"):
            write(database, 2)
    finally:
        moved.rename(tmp_path)


def test_a_file_in_its_place_is_written_to(database: Database, tmp_path: Path) -> None:
    write(database, 1)
    write(database, 2)
    database.close()
    assert numbers_in(tmp_path / "x.db") == [1, 2]
