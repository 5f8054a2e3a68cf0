"""Files and servers that cannot be opened or written, for real."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.db.values import add, begin, outcome, timed
from tests.db.writer import NOBODY, facts, start
from tuner.core.errors import UsageError
from tuner.core.queries import TrialQuery
from tuner.db import database
from tuner.db.address import FileAddress, ServerAddress, parse_address
from tuner.db.store import Store

SLOW_TO_LOAD = {"alembic", "mako", "optuna", "jinja2", "yaml", "numba_cuda_mlir", "torch_mlir"}


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="tuner-db-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def filled(path: Path) -> Path:
    with Store.open(str(path)) as store:
        add(store, begin(store), 0, outcome(timed(1.0)))
    return path


def test_folders_above_a_new_database_are_made_and_signs_of_a_url_are_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "50% a?mode=ro#b.db"
    assert filled(path).is_file()
    path.chmod(0o444)
    with Store.open(str(path)) as store:
        assert store.info().trials == 1


def test_a_file_is_kept_in_wal_with_its_references_checked(tmp_path: Path) -> None:
    connection = database._connect_to_write(filled(tmp_path / "tuner.db"))  # noqa: SLF001
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (30_000,)
    connection.close()


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def below_a_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "tuner.db"


REFUSED: dict[str, Callable[[Path], Path]] = {  # what is said of a place in a folder -> the place
    "found a directory, allowed a file": lambda folder: folder,
    "found no regular file, allowed a file": pipe,
    "cannot be created: Not a directory|cannot be created: File exists": below_a_file,
    "cannot be created: File name too long": lambda folder: folder / f"{'x' * 300}.db",
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_file_is_refused(tmp_path: Path, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Store.open(str(REFUSED[message](tmp_path)))


@pytest.mark.parametrize("size", [10, 5000])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(b"milk and eggs" * size)
    with pytest.raises(UsageError, match="is not a SQLite database") as refused:
        Store.open(str(path))
    assert isinstance(refused.value.__cause__, sa.exc.DatabaseError)
    assert path.read_bytes() == b"milk and eggs" * size


def test_a_damaged_database_is_refused_and_damage_found_later_reported_as_well(tmp_path: Path) -> None:
    path = filled(tmp_path / "tuner.db")
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'trial'")
    whole, page = path.read_bytes(), b"\xff" * 4096
    path.write_bytes(whole[: (root - 1) * 4096] + page + whole[root * 4096 :])
    with Store.open(str(path)) as store, pytest.raises(UsageError, match="found a damaged database"):
        store.trials(TrialQuery())
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(UsageError, match="found a damaged database"):
        Store.open(str(path))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE measurement SET samples_s = CAST(X'5bff5d' AS TEXT)",  # no UTF-8
        "UPDATE measurement SET samples_s = '[0.1'",
        f"UPDATE measurement SET samples_s = '{'[' * 100_000}'",
        "UPDATE trial SET proposed = '\\n026-11-23'",
        "UPDATE trial SET knobs = 5",
    ],
)
def test_damaged_values_are_reported_as_well(tmp_path: Path, change: str) -> None:
    path = filled(tmp_path / "tuner.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        assert connection.execute(change).rowcount > 0
    connection.close()
    with Store.open(str(path)) as store, pytest.raises(UsageError, match="damaged") as refused:
        store.trials(TrialQuery())
    assert "\n" not in str(refused.value)


def test_a_lock_that_is_never_given_back_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_LIMIT_S", 0.05)
    path = filled(tmp_path / "tuner.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Store.open(str(path)) as store:
        assert store.info().trials == 1  # a reader does not wait
        with pytest.raises(UsageError, match="is locked by another process"):
            begin(store)
        other.execute("ROLLBACK")
        assert begin(store)
    other.close()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Gives up root's rights, which no file mode limits."""
    if os.geteuid() != 0:
        yield
        return
    campaigns = os.getgroups()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(campaigns)


@pytest.mark.parametrize(
    ("name", "message"),
    [("tuner.db", "its directory is read-only"), ("below/tuner.db", "cannot be created: Permission denied")],
)
def test_a_new_database_in_a_closed_folder_is_refused(public_folder: Path, name: str, message: str) -> None:
    public_folder.chmod(0o555)
    with as_nobody(), pytest.raises(UsageError, match=message):
        Store.open(f"{public_folder}/{name}")


def test_a_file_that_may_not_be_read_is_refused(public_folder: Path) -> None:
    path = filled(public_folder / "tuner.db")
    path.chmod(0o000)
    with as_nobody(), pytest.raises(UsageError, match="the file may not be read"):
        Store.open(str(path))


@pytest.mark.parametrize("mode", [0o555, 0o777], ids=["folder closed", "folder open"])
def test_a_read_only_database_is_queried_but_not_written(public_folder: Path, mode: int) -> None:
    path = filled(public_folder / "tuner.db")
    path.chmod(0o444)
    public_folder.chmod(mode)
    with as_nobody(), Store.open(str(path)) as store:
        assert len(store.trials(TrialQuery())) == 1
        with pytest.raises(UsageError, match=r"is read-only: it can be queried, not written$"):
            begin(store)


@pytest.mark.slow
def test_a_reader_without_rights_sees_what_a_writer_has_just_stored(public_folder: Path) -> None:
    public_folder.chmod(0o755)
    with Store.open(f"{public_folder}/tuner.db") as writer:
        for path in public_folder.iterdir():
            path.chmod(0o444 if os.geteuid() == 0 else 0o644)
        add(writer, begin(writer), 0, outcome(timed(1.0)))
        if os.geteuid() != 0:
            pytest.skip("only root has another user to read as")
        assert facts(start("read_as_nobody", f"{public_folder}/tuner.db"))["found"] == 1


def test_what_may_not_be_read_or_needs_an_upgrade_but_is_read_only_is_refused(public_folder: Path) -> None:
    sqlite3.connect(public_folder / "tuner.db").close()
    (public_folder / "tuner.db").chmod(0o444)
    public_folder.chmod(0o555)
    with as_nobody(), pytest.raises(UsageError, match="is read-only"):
        Store.open(f"{public_folder}/tuner.db")


@pytest.mark.slow
def test_opening_a_database_at_head_loads_nothing_slow(tmp_path: Path) -> None:
    path = filled(tmp_path / "tuner.db")
    opens = "import sys; from tuner.db.store import Store; Store.open(sys.argv[1]).close()"
    code = f"{opens}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    options = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(options, capture_output=True, text=True, check=True, env=environment)
    loaded = set(done.stdout.split())
    assert "sqlalchemy" in loaded
    assert not loaded & SLOW_TO_LOAD


def test_a_server_without_its_driver_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # what an import finds that is not installed
    with pytest.raises(UsageError, match=r"needs psycopg 3, found none; pip install 'psycopg\[binary\]'$"):
        Store.open("postgresql://me@host/results")


@pytest.mark.postgres
def test_a_server_without_an_answer_or_the_database_is_reported_in_one_line(postgres_server: str) -> None:
    with pytest.raises(UsageError, match=r"^database postgresql.*refused") as refused:
        Store.open("postgresql://me:secret@127.0.0.1:1/results")
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)
    with pytest.raises(UsageError, match=r'database "absent" does not exist$'):
        Store.open(postgres_server.replace("/postgres?", "/absent?"))


@pytest.mark.postgres
def test_a_lost_connection_is_made_anew(postgres_url: str) -> None:
    with Store.open(postgres_url) as store, Store.open(postgres_url) as killer:
        begin(store)
        with killer.database.reading() as session:
            others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
            query = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"
            assert session.scalars(sa.text(query)).all() == [True]
        begin(store)
        assert store.info().runs == 2


@pytest.mark.postgres
def test_a_user_without_rights_is_reported(postgres_url: str) -> None:
    with Store.open(postgres_url) as store, store.database.writing() as session:
        schema = session.scalar(sa.text("SELECT current_schema()"))
        session.execute(sa.text(f"CREATE ROLE reader_{schema} LOGIN"))
        session.execute(sa.text(f"GRANT USAGE ON SCHEMA {schema} TO reader_{schema}"))
        session.execute(sa.text(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader_{schema}"))
    with Store.open(postgres_url.replace("//tuner@", f"//reader_{schema}@")) as store:
        assert store.runs() == ()
        with pytest.raises(UsageError, match="this user lacks a permission"):
            begin(store)


# Addresses of databases.


def test_each_spelling_of_an_address_is_parsed_and_shown_without_its_password() -> None:
    for text in ("/data/tuner.db", "/data/50% of a/tu?ner#.db", "/data/a:b@c.db"):
        assert parse_address(text) == FileAddress(Path(text))
    assert parse_address("sqlite:////data/tuner.db") == FileAddress(Path("/data/tuner.db"))
    assert parse_address("~/tuner.db") == FileAddress(Path.home() / "tuner.db")
    for text in ("postgres/tuner.db", "sqlite.db", "./postgresql:a", "tuner.db", "sqlite:///tuner.db"):
        assert parse_address(text) == FileAddress(Path.cwd() / text.removeprefix("sqlite:///"))
    assert FileAddress(Path("/data/tuner.db")).shown == "sqlite:////data/tuner.db"
    address = parse_address("postgresql://me:secret@host/results")
    assert isinstance(address, ServerAddress)
    assert (address.url.password, address.shown) == ("secret", "postgresql+psycopg://me:***@host/results")
    results = "://me@host:5433/results?sslmode=require"
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        address = parse_address(scheme + results)
        assert isinstance(address, ServerAddress)
        assert address.url.render_as_string(hide_password=False) == f"postgresql+psycopg{results}"


MISTYPED = "found a mistyped URL"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "^database: found '', allowed a file's path, "),
        ("a\0b", r"^database: found 'a\\x00b', allowed"),
        ("mysql://host/results", "^database: found a mysql URL, allowed"),
        ("postgresql+asyncpg://host/results", r"found a postgresql\+asyncpg URL, allowed"),
        ("postgresql://me:secret@host:port/results", "found a malformed postgresql URL, allowed"),
        ("://", "found a malformed  URL, allowed"),
        ("sqlite://", "^database: found sqlite://, allowed"),
        ("sqlite:///:memory:", "found sqlite:///:memory:, allowed"),
        ("sqlite:///a.db?mode=ro", r"found sqlite:///a.db\?mode=ro, allowed"),
        ("sqlite://host/a.db", "found sqlite://host/a.db, allowed"),
        ("postgresql//me:secret@host/results", f"{MISTYPED}, allowed .*; a file of that name: ./NAME$"),
        *((text, MISTYPED) for text in ("postgres:/results", "postgresql:results", "mysql//results")),
        *(
            (text, MISTYPED)
            for text in ("http:/results", "me:secret@host/results", "host=host password=secret")
        ),
        ("postgress://me:secret@host/results", "found a postgress URL, allowed"),
        ("me:secret@postgresql://host/results", "malformed URL, allowed"),
        ("sqlite://me:secret@/a.db", r"found sqlite://me:\*\*\*@/a.db, allowed"),
        ("~nobody-of-that-name/a.db", "found '~nobody-of-that-name/a.db', allowed"),
    ],
)
def test_what_is_no_address_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        parse_address(text)
    assert "secret" not in str(refused.value)
