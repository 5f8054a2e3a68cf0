"""Runs commands in this process: ``tuner("tune", ...)`` gives exit code, stdout and stderr."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

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

    def __call__(self, *options: str, stdin: str = "") -> Done:
        environment = {"TUNER_DB": self.url}  # "": the user's own database, which may be missing
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database_name, "default_file", lambda: self.database)
            done = CliRunner().invoke(main, options, obj=self.backends, env=environment, input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    def refused(self, *options: str, stdin: str = "") -> str:
        """Returns what a command that must be refused prints: an error, at most one hint; exit code 2."""
        done = self(*options, stdin=stdin)
        assert (done.code, done.out) == (2, ""), done.err
        assert re.fullmatch(r"error: .+\n(hint: .+\n)?", done.err), done.err
        return done.err


def counts(**given: int) -> dict[str, int]:
    """Returns the counts of a run's trials as documents have them; those that are not given are 0."""
    names = ("proposed", "measured", "verified", "failed", "reused", "compiled")
    return {**dict.fromkeys(names, 0), **given}


@pytest.fixture
def tuner(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", fakes.backends())


@pytest.fixture(scope="session")
def tuned_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tuner = Tuner(tmp_path_factory.mktemp("tuned") / "results.db", fakes.backends())
    done = tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20")
    assert done.code == 0, done.err
    return tuner.database


@pytest.fixture
def tuned(tuner: Tuner, tuned_database: Path) -> Tuner:
    shutil.copy(tuned_database, tuner.database)
    return tuner
