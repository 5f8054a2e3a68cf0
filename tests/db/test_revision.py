"""The schema: migrations make what the models say; a database that is not ours stays as it is."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory

from tests.db.values import begin
from tuner.core.errors import UsageError
from tuner.db import database as revision
from tuner.db.address import parse_address
from tuner.db.engine import WRITES, open_engine
from tuner.db.store import Store


def config(connection: sa.Connection | None = None) -> Config:
    """Returns alembic's settings for our migrations."""
    made = Config()
    made.set_main_option("script_location", str(revision.MIGRATIONS))
    made.attributes["connection"] = connection
    return made


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    """Gives a connection behind the store's back; what it changes is committed."""
    engine = open_engine(parse_address(url)).execution_options(**{WRITES: True})
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def execute(url: str, *statements: str) -> None:
    """Changes a database behind the store's back."""
    with connected(url) as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def structure(url: str) -> dict[str, tuple[Any, ...]]:
    """Returns everything that a database reports about its tables, in no order."""
    with connected(url) as connection:
        inspector = sa.inspect(connection)
        return {
            table: (
                {column["name"]: str(column) for column in inspector.get_columns(table)},
                str(inspector.get_pk_constraint(table)),
                *(
                    sorted(map(str, ask(table)))
                    for ask in (
                        inspector.get_foreign_keys,
                        inspector.get_indexes,
                        inspector.get_unique_constraints,
                        inspector.get_check_constraints,
                    )
                ),
            )
            for table in inspector.get_table_names()
        }


def make_empty(url: str) -> None:
    """Makes the folder of a file; a server's database is there."""
    if "://" not in url:
        Path(url).parent.mkdir(parents=True)


def test_the_revisions_are_those_of_the_migrations() -> None:
    known = [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()]
    assert tuple(reversed(known)) == revision.REVISIONS


@pytest.mark.slow
def test_a_new_database_made_from_the_models_is_the_one_that_the_migrations_make(url: str) -> None:
    Store.open(url).close()
    new = structure(url)
    assert "ck_measurement_one_owner" in str(new["measurement"])
    with connected(url) as connection:
        command.downgrade(config(connection), "base")
    assert set(structure(url)) == {revision.VERSION_TABLE}
    with connected(url) as connection:
        command.upgrade(config(connection), "head")
    assert structure(url) == new


def test_a_measurement_has_one_owner(url: str) -> None:
    with Store.open(url) as store:
        run = begin(store)
    columns = "kind, samples_s, inner_calls, median_s, low_s, high_s, is_complete"
    values = "'baseline', '[]', 1, 1, 1, 1, true"
    with pytest.raises(sa.exc.IntegrityError, match="one_owner"):
        execute(url, f"INSERT INTO measurement ({columns}) VALUES ({values})")
    execute(url, f"INSERT INTO measurement (run_id, {columns}) VALUES ({run}, {values})")


@pytest.fixture
def next_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Gives the tuner one more migration, drafted from the template."""
    folder = shutil.copytree(str(revision.MIGRATIONS), tmp_path / "migrations")
    monkeypatch.setattr(revision, "MIGRATIONS", folder)
    made = command.revision(config(), "Add clocks", rev_id="9999")
    assert isinstance(made, Script)
    text = Path(made.path).read_text()
    assert text.startswith('"""Add clocks."""\n')
    assert f"down_revision = '{revision.REVISIONS[-1]}'" in text
    add_column = 'op.add_column("run", sa.Column("clocks", sa.Text()))'
    Path(made.path).write_text(text.replace("    pass\n", f"    {add_column}\n", 1))
    monkeypatch.setattr(revision, "REVISIONS", (*revision.REVISIONS, "9999"))
    return "9999"


def test_the_next_migration_upgrades_a_database_of_today(url: str, request: pytest.FixtureRequest) -> None:
    with Store.open(url) as store:
        run = begin(store)
    newest = request.getfixturevalue("next_revision")
    with Store.open(url) as store:
        assert store.info().revision == newest
        assert store.run(run)
    assert "clocks" in structure(url)["run"][0]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("found", ["9999", "v3.2.0.a"])
def test_a_newer_database_is_refused_and_left_alone(url: str, found: str) -> None:
    Store.open(url).close()
    execute(url, f"UPDATE alembic_version SET version_num = '{found}'", "DROP TABLE measurement")
    with pytest.raises(
        UsageError, match=f"found revision {found}, allowed up to {revision.REVISIONS[-1]}: a newer tuner"
    ):
        Store.open(url)
    assert "measurement" not in structure(url)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("found", ["0001", "0014"])
def test_a_database_from_before_the_first_release_is_refused_and_left_alone(url: str, found: str) -> None:
    Store.open(url).close()
    execute(url, f"UPDATE alembic_version SET version_num = '{found}'", "ALTER TABLE run DROP COLUMN noise")
    before = structure(url)
    for opened in (Store.open, Store.open_existing):
        message = f"found revision {found}, allowed 0015 or newer: to upgrade it, .* of commit [0-9a-f]{{7}}$"
        with pytest.raises(UsageError, match=message):
            opened(url)
    assert structure(url) == before


def test_a_database_of_another_program_is_refused_and_left_alone(url: str) -> None:
    make_empty(url)
    execute(url, "CREATE TABLE bookmarks (id INTEGER)")
    with pytest.raises(UsageError, match="has tables of another program"):
        Store.open(url)
    assert set(structure(url)) == {"bookmarks"}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ["create", "upgrade"])
def test_an_upgrade_that_fails_leaves_the_database_as_it_was(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    make_empty(url)
    if name == "upgrade":
        Store.open(url).close()
        request.getfixturevalue("next_revision")
    before = structure(url)
    original = getattr(revision, name)

    def work_and_fail(connection: sa.Connection) -> None:
        original(connection)
        raise InterruptedError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(revision, name, work_and_fail)
        with pytest.raises(InterruptedError, match="killed"):
            Store.open(url)
    assert structure(url) == before
    with Store.open(url) as store:
        assert store.info().runs == 0


def test_a_database_that_another_process_makes_meanwhile_is_ours(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = revision.stored_revision

    def look_and_be_late(connection: sa.Connection) -> str | None:
        found = look(connection)
        monkeypatch.undo()
        Store.open(url).close()
        return found

    monkeypatch.setattr(revision, "stored_revision", look_and_be_late)
    with Store.open(url) as store:
        assert store.info().revision == revision.REVISIONS[-1]
