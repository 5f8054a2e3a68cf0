"""The schema: migrations make what the models say; a database that is not ours stays as it is."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.db import first_revision
from tests.db.values import MACHINE, PROBLEM, add, begin, outcome, timed
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.runs import TrialQuery
from tuner.db import revision
from tuner.db.address import parse_address
from tuner.db.models import Base
from tuner.db.opening import WRITES, open_engine
from tuner.db.store import Store
from tuner.runtime.cpu.describe_host import describe_machine

MIGRATIONS = Path(revision.__file__).parent / "migrations"


def config() -> Config:
    """Returns alembic's settings for our migrations."""
    made = Config()
    made.set_main_option("script_location", str(MIGRATIONS))
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


def tables(url: str) -> set[str]:
    """Returns the names of the tables."""
    with connected(url) as connection:
        return set(sa.inspect(connection).get_table_names())


def structure(url: str) -> dict[str, object]:
    """Returns all that a database tells of its tables, in no order."""
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


def migrate(url: str, to: str = "head") -> None:
    """Upgrades a database with the migrations."""
    with connected(url) as connection:
        settings = config()
        settings.attributes["connection"] = connection
        command.upgrade(settings, to)


def make_empty(url: str) -> None:
    """Makes the folder of a file; a server's database is there."""
    if "://" not in url:
        Path(url).parent.mkdir(parents=True)


def test_the_revisions_are_those_of_the_migrations() -> None:
    known = [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()]
    assert tuple(reversed(known)) == revision.REVISIONS


def test_the_migrations_make_what_the_models_say(url: str) -> None:
    make_empty(url)
    migrate(url)
    with connected(url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []
        checks = sa.inspect(connection).get_check_constraints("measurement")
        assert [check["name"] for check in checks] == ["ck_measurement_one_owner"]


def test_a_new_database_is_the_one_that_the_migrations_make(url: str) -> None:
    Store.open(url).close()
    new = structure(url)
    with connected(url) as connection:
        settings = config()
        settings.attributes["connection"] = connection
        command.downgrade(settings, "base")
    assert set(structure(url)) == {revision.VERSION_TABLE}
    migrate(url)
    assert structure(url) == new


def test_a_measurement_has_one_owner(url: str) -> None:
    with Store.open(url) as store:
        run = begin(store)
    columns = "kind, samples_s, inner_calls, median_s, low_s, high_s, is_complete"
    values = "'baseline', '[]', 1, 1, 1, 1, true"
    with pytest.raises(sa.exc.IntegrityError, match="one_owner"):
        execute(url, f"INSERT INTO measurement ({columns}) VALUES ({values})")
    execute(url, f"INSERT INTO measurement (run_id, {columns}) VALUES ({run}, {values})")


def test_a_change_of_the_models_is_noticed(url: str) -> None:
    Store.open(url).close()
    execute(url, "ALTER TABLE run DROP COLUMN noise")
    with connected(url) as connection:
        (difference,) = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    assert difference[0] == "add_column"


def test_taking_every_migration_back_leaves_nothing(url: str) -> None:
    Store.open(url).close()
    with connected(url) as connection:
        settings = config()
        settings.attributes["connection"] = connection
        command.downgrade(settings, "base")
    assert tables(url) == {"alembic_version"}
    with Store.open(url) as store:
        assert store.info().revision == revision.REVISIONS[-1]


def test_a_new_migration_is_drafted_from_the_template(tmp_path: Path) -> None:
    settings = config()
    settings.set_main_option("version_locations", f"{MIGRATIONS / 'versions'} {tmp_path}")
    settings.set_main_option("path_separator", "space")
    made = command.revision(settings, "Add clocks", rev_id="9999", version_path=str(tmp_path))
    assert made is not None
    assert not isinstance(made, list)
    text = Path(made.path).read_text()
    compile(text, made.path, "exec")
    assert text.startswith('"""Add clocks."""\n')
    assert f"down_revision = '{revision.REVISIONS[-1]}'" in text


@pytest.mark.parametrize("found", ["9999", "v3.2.0.a"])
def test_a_newer_database_is_refused_and_left_alone(url: str, found: str) -> None:
    Store.open(url).close()
    execute(url, f"UPDATE alembic_version SET version_num = '{found}'", "DROP TABLE measurement")
    with pytest.raises(
        UsageError, match=f"found revision {found}, allowed up to {revision.REVISIONS[-1]}: a newer tuner"
    ):
        Store.open(url)
    assert "measurement" not in tables(url)


def test_a_database_of_another_program_is_refused_and_left_alone(url: str) -> None:
    make_empty(url)
    execute(url, "CREATE TABLE bookmarks (id INTEGER)")
    with pytest.raises(
        UsageError, match="found tables of another program, allowed ours or an empty database"
    ):
        Store.open(url)
    assert tables(url) == {"bookmarks"}


@pytest.mark.parametrize("first", [None, "0001"])
def test_an_upgrade_that_fails_leaves_the_database_as_it_was(
    url: str, first: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_after(name: str) -> None:
        original = getattr(revision, name)

        def work_and_fail(connection: sa.Connection) -> None:
            original(connection)
            raise InterruptedError("killed")

        monkeypatch.setattr(revision, name, work_and_fail)

    make_empty(url)
    if first is not None:
        migrate(url, first)
    before = structure(url)
    fail_after("create" if first is None else "upgrade")
    with pytest.raises(InterruptedError, match="killed"):
        Store.open(url)
    assert structure(url) == before
    monkeypatch.undo()
    with Store.open(url) as store:
        assert store.info().runs == 0


def test_a_database_of_the_first_revision_keeps_its_trials(url: str) -> None:
    make_empty(url)
    migrate(url, "0001")
    execute(url, *first_revision.ROWS)
    with Store.open(url) as store:
        assert store.info().revision == revision.REVISIONS[-1]
        (trial,) = store.trials(TrialQuery())
        assert (trial.record, trial.machine) == (outcome(timed(0.5), artifact="c0de"), MACHINE)
        assert store.run(trial.run).settings.problem == PROBLEM
        # what is stored from now on shares the old rows
        add(store, begin(store), 0, outcome(timed(0.4)))
        assert store.info().problems == (PROBLEM.key,)
    with connected(url) as connection:
        for table in ("problem", "machine", "script"):
            assert connection.scalar(sa.text(f"SELECT count(*) FROM {table}")) == 1, table


HERE = describe_machine()
XEON = replace(
    HERE, processor="Xeon 8481C", isa="avx512", has_bf16=True, l1_bytes=48 << 10, l2_bytes=2 << 20, l3_bytes=0
)
XEON_NAME = "Xeon 8481C (family 6 model 143, avx512 bf16 vnni, caches 48K/2M/?)"
EARLIER_NAME = re.sub(r"(avx512|avx2|none)[^()]*\)", r"\1)", HERE.name)  # what revision 0013 called it


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (replace(HERE, name=EARLIER_NAME), HERE),
        (replace(XEON, name="Xeon 8481C (family 6 model 143, avx512)"), replace(XEON, name=XEON_NAME)),
        (replace(XEON, name="replay Xeon 8481C (family 6 model 143, avx512)"), None),
        (replace(XEON, name="mine"), None),
    ],
    ids=["this one", "with BF16", "replay", "other"],
)
def test_machines_of_older_databases_get_the_name_that_they_have_today(
    url: str, stored: Machine, expected: Machine | None
) -> None:
    with Store.open(url) as store:
        trial = add(store, begin(store, machine=stored), 0, outcome(timed(0.5)))
    with connected(url) as connection:
        settings = config()
        settings.attributes["connection"] = connection
        command.downgrade(settings, "0013")
        assert connection.scalar(sa.text("SELECT name FROM machine")) == stored.name
    with Store.open(url) as store:
        now = expected or stored
        assert store.trial(trial).machine == now
        begin(store, machine=now)  # shares the old row
    with connected(url) as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM machine")) == 1
        settings.attributes["connection"] = connection
        command.downgrade(settings, "0013")
        assert connection.scalar(sa.text("SELECT name FROM machine")) == stored.name


def test_taking_back_the_second_revision_keeps_the_trials_of_processors(url: str) -> None:
    with Store.open(url) as store:
        add(store, begin(store), 0, outcome(timed(0.5)))
    with connected(url) as connection:
        settings = config()
        settings.attributes["connection"] = connection
        command.downgrade(settings, "0001")
    with Store.open(url) as store:
        assert [trial.record for trial in store.trials(TrialQuery())] == [outcome(timed(0.5))]


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
