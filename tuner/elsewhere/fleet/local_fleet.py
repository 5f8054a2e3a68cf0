"""A temporary fleet on this machine: a PostgreSQL server and nodes, with nothing left afterwards.

``server`` starts PostgreSQL in a folder of its own, ``LocalNodes`` starts nodes as child processes,
``local_fleet`` combines both.
"""

import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from tuner.core.errors import TunerError, last_line
from tuner.elsewhere.fleet import tables
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.leftovers import MARK, cleaned_up_unless_ended, marked
from tuner.elsewhere.fleet.server import require_packages, session
from tuner.elsewhere.fleet.tables import FleetSettings, read_settings

PACKAGED = Path("/usr/lib/postgresql")


LIMIT_S = 180  # of initdb and pg_ctl, which take a second on a quiet machine
READY_LIMIT_S: Final = 120.0  # until a node is at work, on a busy machine
ORPHAN_LIMIT_S: Final = 60.0  # that the end of a killed process's children may take, on a busy machine
LOOK_S: Final = 0.05
LEASE_S: Final = 10.0
END_LIMIT_S: Final = 30.0  # that a node may need for its current work
NODES: Final = (
    ("compile-1", ("--compile", "1")),
    ("compile-2", ("--compile", "1")),
    ("measure", ("--measure",)),
)


class NoServerError(TunerError):
    """No PostgreSQL server can be started on this machine; the message says why."""


@contextmanager
def server() -> Iterator[str]:
    """Context manager: runs a temporary PostgreSQL server, whose database URL it gives; deleted at its end.

    Raises NoServerError if PostgreSQL or psycopg is not installed, or the server does not start.
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
    """Returns the folder of a server that ``server`` has started, from its URL."""
    return Path(url.rpartition("?host=")[2])


def start(folder: Path) -> None:
    """Starts the PostgreSQL server of ``folder``/d. Raises NoServerError if it does not start."""
    _run(folder, _programs() / "pg_ctl", "start", "-w", "-l", f"{folder}/log", "-o", "-F")


def _programs() -> Path:
    installed = sorted(
        PACKAGED.glob("*/bin/initdb"), key=lambda path: int(re.sub(r"\D", "", path.parts[4]) or 0)
    )
    if not installed:
        raise NoServerError(
            f"no PostgreSQL server: found no initdb under {PACKAGED}; install the package postgresql"
        )
    if os.geteuid() == 0 and all(user.pw_name != "postgres" for user in pwd.getpwall()):
        raise NoServerError("no PostgreSQL server: it refuses to run as root; needs the user postgres")
    return installed[-1].parent


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


@final
class LocalNodes:
    """Nodes and commands of a fleet as child processes with logs.

    A context manager that kills them at its end.
    """

    def __init__(self, url: str, target: str, folder: Path) -> None:
        self.url = url
        self._target = target
        self.folder = folder
        self._mark = uuid.uuid4().hex
        self._leftovers = cleaned_up_unless_ended(self._mark)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self._leftovers.__enter__()
        return self

    def __exit__(
        self, class_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._processes:
            self.kill(name)
        self._leftovers.__exit__(class_, error, trace)

    def start(self, name: str, *options: str, target: str = "", before: tuple[str, ...] = ()) -> None:
        """Starts a node called ``name`` with options such as ``"--compile", "2"``.

        ``target``: "" for the target of these nodes; ``before``: a command that runs the node's command, such
        as env.
        """
        of_all = ("--target", target or self._target, "--name", name, "--db", self.url)
        self.start_command(name, ("fleet", "worker", *of_all, *options), before)

    def start_command(self, name: str, options: tuple[str, ...], before: tuple[str, ...] = ()) -> None:
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self.command(*options, before=before), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def command(self, *options: str, before: tuple[str, ...] = ()) -> list[str]:
        """Returns the command line of ``tuner`` with options and this fleet's mark.

        ``before``: a command that executes it, such as env.
        """
        # killed processes leave temporary files
        variables = (f"{MARK}={self._mark}", f"TMPDIR={self.folder}")
        return ["env", *variables, *before, sys.executable, "-m", "tuner", *options]

    def wait_until_ready(self, *names: str) -> None:
        """Waits until the named nodes take work.

        Raises TunerError if one ends, or after READY_LIMIT_S seconds.
        """
        give_up_s = time.monotonic() + READY_LIMIT_S
        with session(self.url) as connection:
            lease_s = read_settings(connection).lease_s
            while True:
                seen = [node for node in tables.stored_nodes(connection) if not node.is_lost(lease_s)]
                missing = set(names) - {stored.node.name for stored in seen}
                if not missing:
                    return
                ended = list(filter(self.has_ended, missing))
                if ended or time.monotonic() > give_up_s:
                    name = min(ended or missing)
                    raise TunerError(f"fleet: node {name}: {self.last_line(name)}")
                time.sleep(LOOK_S)

    def has_ended(self, name: str) -> bool:
        return self._processes[name].poll() is not None

    def wait(self, name: str, limit_s: float) -> int:
        """Waits until the process called ``name`` ends; returns its exit status.

        Raises TunerError if it does not end within ``limit_s`` seconds.
        """
        try:
            return self._processes[name].wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise TunerError(f"{name}: did not end within {limit_s:g} s") from error

    def process(self, name: str) -> int:
        return self._processes[name].pid

    def ask_to_end(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGTERM)

    def kill(self, name: str) -> None:
        self._processes[name].kill()
        self._processes[name].wait()

    def said(self, name: str) -> str:
        return self._log(name).read_text(errors="replace")

    def last_line(self, name: str) -> str:
        return last_line(self.said(name))

    def orphans(self, within_s: float = ORPHAN_LIMIT_S) -> tuple[int, ...]:
        """Waits, at most ``within_s`` seconds, until all started processes have ended.

        Returns the ids of the processes that still run.
        """
        give_up_s = time.monotonic() + within_s
        while (left := marked(self._mark)) and time.monotonic() < give_up_s:
            time.sleep(LOOK_S)
        return left

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextmanager
def local_fleet(target: str, say: Callable[[str], None]) -> Iterator[LocalNodes]:
    """Context manager: runs a fleet on this machine, a PostgreSQL server and three nodes for ``target``.

    ``say`` gets lines of progress. Raises TunerError for a missing package or program, a node that does not
    begin or end its work in time, and processes that are left at the end.
    """
    require_packages()
    with server() as url:
        say("a PostgreSQL server is up, in a folder of its own")
        install(url, FleetSettings(LEASE_S))
        with LocalNodes(url, target, folder_of(url)) as nodes:
            names = [name for name, _ in NODES]
            for name, options in NODES:
                nodes.start(name, *options)
            nodes.wait_until_ready(*names)
            say(f"nodes are at work: {', '.join(names)}")
            yield nodes
            for name in names:
                nodes.ask_to_end(name)
            for name in names:
                nodes.wait(name, END_LIMIT_S)
    left = nodes.orphans()
    if left:
        raise TunerError(f"fleet: its processes {', '.join(map(str, left))} are left after its end")
    say("nodes and server have ended; their folders are gone")
