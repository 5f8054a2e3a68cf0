"""Runs commands in this process: ``tuner("tune", ...)`` gives exit code, stdout and stderr."""

import json
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import commands as developers
from tests.tuning import fakes
from tuner.cli import main
from tuner.results import database_name
from tuner.targets.backends import Backends


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Tuner:
    """Runs commands on one database with fakes in place of compiler and clock."""

    database: Path
    backends: Backends
    url: str = ""  # of a server's database, instead of the file

    def __call__(self, command: str, *options: str, stdin: str = "") -> Done:
        """Runs a command; its first words may be one text: ``tuner("db merge", file)``."""
        words = (*command.split(" "), *options)
        environment = {"TUNER_DB": self.url}  # "": the user's own database, which may be missing
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database_name, "default_file", lambda: self.database)
            group = developers if words[0] in developers.commands else main
            done = CliRunner().invoke(group, words, obj=self.backends, env=environment, input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    def done(self, command: str, *options: str, stdin: str = "", code: int = 0) -> Done:
        """Returns what a command prints that must succeed, or end with another code."""
        done = self(command, *options, stdin=stdin)
        assert done.code == code, done.err
        return done

    def failed(self, command: str, *options: str, stdin: str = "") -> Done:
        """Returns what a command that must end with 1 prints."""
        return self.done(command, *options, stdin=stdin, code=1)

    def refused(self, command: str, *options: str, stdin: str = "") -> str:
        """Returns what a command that must be refused prints: an error, at most one hint; exit code 2."""
        done = self(command, *options, stdin=stdin)
        assert (done.code, done.out) == (2, ""), done.err
        assert re.fullmatch(r"error: .+\n(hint: .+\n)?", done.err), done.err
        return done.err


def require(text: Collection[str], *phrases: str, without: str | None = None) -> None:
    """Asserts that a text holds each phrase, or a list of lines each line, and not the one of ``without``."""
    assert [phrase for phrase in phrases if phrase not in text] == [], text
    assert without is None or without not in text


def require_fields(document: dict[str, Any], **fields: Any) -> None:
    """Asserts that a document has these fields with these values; it may have others."""
    assert {name: document[name] for name in fields} == fields


def counts(**given: int) -> dict[str, int]:
    """Returns the counts of a run's trials as documents have them; those that are not given are 0."""
    names = ("proposed", "measured", "verified", "failed", "reused", "compiled")
    return {**dict.fromkeys(names, 0), **given}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives the test's own folder, which is the one that its commands run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tuner(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", fakes.backends())


@pytest.fixture(scope="session")
def tuned_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tuner = Tuner(tmp_path_factory.mktemp("tuned") / "results.db", fakes.backends())
    tuner.done("tune matmul 8x8x8 --sampler exhaustive --trials 20")
    return tuner.database


@pytest.fixture
def tuned(tuner: Tuner, tuned_database: Path) -> Tuner:
    shutil.copy(tuned_database, tuner.database)
    return tuner
