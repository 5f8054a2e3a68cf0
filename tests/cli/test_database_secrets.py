"""No command prints a password of its database's address, or writes one to a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.core.test_address_secrets import ENCODED, FORMS, SECRET
from tests.db.conftest import empty_schema
from tuner.cli import main
from tuner.cli.main import Commands

# Words with which a command comes as far as its database.
WORDS = {
    "tune": ("matmul", "8x8x8", "--trials", "3"),
    "space": ("matmul", "8x8x8"),
    "show": ("1",),
    "diff": ("1", "2"),
    "explain": ("1",),
    "export": ("matmul", "8x8x8"),
    "merge": ("none.db",),
    "backup": ("copy.db",),
    "suggest": ("matmul", "8x8x8"),
    "drain": ("node",),
    "cancel": ("1",),
    "worker": ("--compile", "1"),
    "ssh": ("host", "--compile", "1"),
    "slurm": ("--compile", "1"),
    "kubernetes": ("--compile", "1", "--image", "tuner"),
    "record-space": ("matmul", "8x8x8", "-o", "space.json"),
    "import": ("none.jsonl",),
    "gate": ("--record", "1", "gate.json"),
}
SERVES = {"dashboard"}


def commands(group: Commands, *options: str) -> Iterator[tuple[str, ...]]:
    """Yields the command lines of all commands that take --db."""
    for name, command in group.all_commands().items():
        if isinstance(command, Commands):
            yield from commands(command, *options, name)
        elif name not in SERVES and any(each.name == "database" for each in command.params):
            yield (*options, name, *WORDS.get(name, ()))


COMMANDS = tuple(commands(main))


def require_silent(tuner: Tuner, folder: Path, *options: str) -> None:
    """Runs a command; nothing of it may hold the secret."""
    done = tuner(*options)
    for said in (done.out, done.err):
        assert SECRET not in said, options
        assert ENCODED not in said, options
    for file in folder.rglob("*"):
        assert SECRET not in file.name, options
        assert file.is_dir() or SECRET.encode() not in file.read_bytes(), options


def test_all_commands_with_a_database_are_looked_at() -> None:
    assert {"tune", "history", "runs", "report", "export", "merge", "worker"} <= {
        text for options in COMMANDS for text in options
    }


@pytest.mark.parametrize("form", FORMS)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    nowhere = form.replace("@h", "@").replace("//h", "//") if "postgresql://" in form else form
    address = nowhere.format(SECRET).replace("host=h", "host=/none")
    if address.startswith("postgresql://"):
        address += f"{'&' if '?' in address else '?'}host=/none"
    for options in (("db", "info"), ("db", "upgrade", "--debug"), ("fleet", "status", "--debug")):
        require_silent(tuner, tmp_path, *options, "--db", address)
    assert tuner("db", "upgrade", "--db", address).code == 2
    require_silent(tuner, tmp_path, "db", "merge", address, "--debug")
    assert {path.name for path in tmp_path.iterdir()} <= {"results.db", "results.db-wal", "results.db-shm"}


@pytest.mark.parametrize("options", COMMANDS, ids=" ".join)
def test_no_command_prints_the_password_of_a_server_that_does_not_answer(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for address in (
        f"postgresql://u:{SECRET}@/d?host=/none&sslpassword={ENCODED}",
        f"postgresql//u:{SECRET}@h/d",
    ):
        require_silent(tuner, tmp_path, *options, "--db", address, "--debug")
        tuner.url = address
        require_silent(tuner, tmp_path, *options)


@pytest.mark.slow
@pytest.mark.postgres
def test_no_command_prints_the_password_of_a_server_that_answers(
    tuner: Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_server: str
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"{empty_schema(postgres_server)}&password={ENCODED}".replace("tuner@", f"tuner:{SECRET}@")
    assert tuner("tune", "matmul", "8x8x8", "--trials", "3", "--db", address).code == 0
    for options in COMMANDS:
        if options[0] not in ("verify-resume", "fleet", "record-space", "gate"):
            require_silent(tuner, tmp_path, *options, "--db", address)
    for options in (("db", "info"), ("runs", "--json")):
        assert tuner(*options, "--db", address).code == 0
    assert "***" in tuner("db", "info", "--db", address).out
    require_silent(tuner, tmp_path, "db", "merge", address)
