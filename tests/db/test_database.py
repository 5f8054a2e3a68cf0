"""Nothing that a call stored is lost: kills, other writers, full disks, for real."""

import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory

from tests.db.values import PROBLEM, SCRIPT, TOO_WIDE, begin, outcome, timed
from tests.db.writer import facts, start
from tuner.core.errors import UsageError
from tuner.core.queries import Counts
from tuner.db import database as revision
from tuner.db.address import parse_address
from tuner.db.database import WRITES, Database, open_engine
from tuner.db.store import Store


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_it_proposed(url: str) -> None:
    given = facts(start("propose_and_die", url), status=-signal.SIGKILL)
    with Store.open(url) as store:
        first, second = store.proposals(given["run"])
        assert first.trial is not None
        assert first.trial.record == outcome(timed(0.5))
        assert (second.id, second.row, second.trial) == (given["trial"], 42, None)
        store.resume_run(given["run"])
        store.record(second.id, outcome(TOO_WIDE), SCRIPT)
        assert store.counts(given["run"]) == Counts(proposed=2, measured=1, failed=1)


@pytest.mark.drawn(1)
def test_processes_that_open_and_write_at_once_all_succeed(url: str) -> None:
    runs = [facts(writer)["run"] for writer in [start("write", url, "20") for _ in range(3)]]
    with Store.open(url) as store:
        assert sorted(run.id for run in store.runs()) == sorted(runs)
        assert {store.counts(run) for run in runs} == {Counts(proposed=20, measured=20)}
        assert store.info().problems == (PROBLEM.key,)


def small_disk(folder: Path) -> tuple[str, ...]:
    mount = f"mount -t tmpfs -o size=1m none '{folder}'"
    tried = ("unshare", "--map-root-user", "--mount", "sh", "-c")
    try:
        done = subprocess.run((*tried, mount), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no small disk can be mounted: found no unshare")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.strip() or done.returncode}")
    return (*tried, f'{mount} && exec "$@"', "sh")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("limit", ["tmpfs", "file"])
def test_a_full_disk_loses_nothing_stored_before(limit: str, tmp_path: Path) -> None:
    limits = (str(1024 * 1024),) if limit == "file" else ()
    before = () if limits else small_disk(tmp_path)
    filled = facts(start("fill", f"{tmp_path}/small.db", *limits, before=before))
    assert "the disk" in filled["message"]
    assert "\n" not in filled["message"]
    assert filled["stored"] == filled["found"] > 5


@pytest.mark.slow
def test_a_new_database_on_a_full_disk_is_refused(tmp_path: Path) -> None:
    given = facts(start("open_full", f"{tmp_path}/new.db", before=small_disk(tmp_path)))
    assert "the disk is full" in given["message"]
    assert given["has_cause"]


# Drills: the file of a database goes away while it is written to.


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
    with closing(sqlite3.connect(file)) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number")]


def delete(tmp_path: Path) -> None:
    for file in tmp_path.glob("x.db*"):
        file.unlink()


def test_a_deleted_file_is_noticed_and_all_is_rescued(database: Database, tmp_path: Path) -> None:
    write(database, 1)
    delete(tmp_path)
    rescued = tmp_path / "x.db.rescue-1"
    reason = f"x.db: its file was deleted or replaced; what was stored is in {rescued}"
    with pytest.raises(UsageError, match=re.escape(reason)):
        write(database, 2)
    assert numbers_in(rescued) == [1, 2]
    assert not (tmp_path / "x.db").exists()


def test_a_file_replaced_by_another_is_not_written_over(database: Database, tmp_path: Path) -> None:
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


# The schema: migrations make what the models say; a database that is not ours stays as it is.

CONSTRAINTS = ("foreign_keys", "indexes", "unique_constraints", "check_constraints")


def config(connection: sa.Connection | None = None) -> Config:
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
    with connected(url) as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def structure(url: str) -> dict[str, tuple[Any, ...]]:
    with connected(url) as connection:
        inspector = sa.inspect(connection)
        return {
            table: (
                {column["name"]: str(column) for column in inspector.get_columns(table)},
                str(inspector.get_pk_constraint(table)),
                *(sorted(map(str, getattr(inspector, f"get_{kind}")(table))) for kind in CONSTRAINTS),
            )
            for table in inspector.get_table_names()
        }


def make_empty(url: str) -> None:
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
@pytest.mark.parametrize("found", ["9999", "v3.2.0.a", "0001", "0025", "0028"])
def test_a_newer_and_a_much_older_database_are_refused_and_left_alone(url: str, found: str) -> None:
    newer = f"allowed up to {revision.REVISIONS[-1]}: a newer tuner"
    older = "allowed 0029 or newer: to upgrade it, open it once with the tuner of commit"
    message = {
        "0001": f"{older} 3304e7c, then of 431cb88$",
        "0025": f"{older} 3304e7c, then of 431cb88$",
        "0028": f"{older} 431cb88$",
    }.get(found, newer)
    Store.open(url).close()
    execute(url, f"UPDATE alembic_version SET version_num = '{found}'", "ALTER TABLE run DROP COLUMN noise")
    before = structure(url)
    for opened in (Store.open, Store.open_existing):
        with pytest.raises(UsageError, match=f"found revision {found}, {message}"):
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


def test_a_database_that_another_process_makes_is_ours(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    look = revision.stored_revision

    def look_and_be_late(connection: sa.Connection) -> str | None:
        found = look(connection)
        monkeypatch.undo()
        Store.open(url).close()
        return found

    monkeypatch.setattr(revision, "stored_revision", look_and_be_late)
    with Store.open(url) as store:
        assert store.info().revision == revision.REVISIONS[-1]
