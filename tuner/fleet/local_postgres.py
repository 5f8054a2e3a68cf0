"""A PostgreSQL server on this machine for the time of a block, removed afterwards; imports no psycopg."""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tuner.core.errors import TunerError
from tuner.fleet.leftovers import MARK, cleaned_up_unless_ended

PACKAGED = Path("/usr/lib/postgresql")


LIMIT_S = 180  # of initdb and pg_ctl, which take a second on a quiet machine


class NoServerError(TunerError):
    """An error: no PostgreSQL server can be started on this machine; the message says why."""


@contextmanager
def server() -> Iterator[str]:
    """Runs a temporary PostgreSQL server for a ``with`` block, which gets the URL of its database.

    The folder is deleted after it. Raises NoServerError where it does not start or is not installed.
    """
    if importlib.util.find_spec("psycopg") is None:
        raise NoServerError("PostgreSQL needs psycopg, found none: pip install 'psycopg[binary]'")
    programs = _programs()
    # the path of a socket may have 107 bytes: temporary folders of pytest are too deep
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    with cleaned_up_unless_ended(folder.name, folder):
        try:
            if os.geteuid() == 0:
                shutil.chown(folder, "postgres", "postgres")
            _run(folder, programs / "initdb", "-A", "trust", "-U", "tuner", "-E", "UTF8", "--no-sync")
            with (folder / "d" / "postgresql.conf").open("a") as settings:
                settings.write(f"listen_addresses = ''\nunix_socket_directories = '{folder}'\n")
            start(folder)
            try:
                yield f"postgresql://tuner@/postgres?host={folder}"
            finally:
                _run(folder, programs / "pg_ctl", "stop", "-m", "immediate")
        finally:
            shutil.rmtree(folder)


def folder_of(url: str) -> Path:
    """Returns the folder of a PostgreSQL server from its URL, for servers that ``server`` has started."""
    return Path(url.rpartition("?host=")[2])


def start(folder: Path) -> None:
    """Starts the server whose data lie in ``folder``. Raises NoServerError where it does not start."""
    _run(folder, _programs() / "pg_ctl", "start", "-w", "-l", f"{folder}/log", "-o", "-F")


def _programs() -> Path:
    found = sorted(PACKAGED.glob("*/bin/initdb"), key=lambda path: int(re.sub(r"\D", "", path.parts[4]) or 0))
    if not found:
        raise NoServerError(
            f"no PostgreSQL server: found no initdb under {PACKAGED}; install the package postgresql"
        )
    if os.geteuid() == 0 and all(user.pw_name != "postgres" for user in pwd.getpwall()):
        raise NoServerError("no PostgreSQL server: it refuses to run as root; needs the user postgres")
    return found[-1].parent


def _run(folder: Path, *options: str | Path) -> None:
    # not by runuser: it stops with a stopped child, and stays stopped when both are continued
    user = "postgres" if os.geteuid() == 0 else None
    try:
        done = subprocess.run(
            ["env", f"{MARK}={folder.name}", *options, "-D", f"{folder}/d"],
            cwd="/",
            user=user,
            group=user,
            extra_groups=[] if user else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server keeps a pipe open
            stderr=subprocess.PIPE if "start" not in options else subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        reason = f"{Path(options[0]).name} took more than {LIMIT_S} s"
        raise NoServerError(f"no PostgreSQL server: {reason}") from error
    if done.returncode != 0:
        reason = (done.stderr or b"see its log").decode(errors="replace").strip()
        raise NoServerError(f"no PostgreSQL server: {Path(options[0]).name} failed: {reason}")
