"""A temporary fleet on this machine: a PostgreSQL server and nodes, with nothing left afterwards."""

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, final

from tuner.core.errors import TunerError, last_line
from tuner.fleet import tables
from tuner.fleet.install import install
from tuner.fleet.leftovers import MARK, cleaned_up_unless_ended, marked
from tuner.fleet.local_postgres import folder_of, server
from tuner.fleet.server import require_packages, session
from tuner.fleet.tables import FleetSettings, read_settings

if TYPE_CHECKING:
    from tuner.fleet.server import Connection


READY_LIMIT_S: Final = 120.0  # until a node is at work, on a busy machine
ORPHAN_LIMIT_S: Final = 60.0  # that the end of a killed process's children may take, on a busy machine
LOOK_S: Final = 0.05


@final
class LocalNodes:
    """Nodes and drivers of a fleet as child processes of this process, each with a name and a log file.

    Used in a ``with`` block, at whose end all of them are killed.
    """

    def __init__(self, url: str, target: str, folder: Path) -> None:
        self.url = url
        self._target = target
        self.folder = folder
        self._mark = uuid.uuid4().hex
        self._leftovers = cleaned_up_unless_ended(self._mark)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        """Returns itself; the processes end with this process, also if it is killed."""
        self._leftovers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kills all processes."""
        for name in self._processes:
            self.kill(name)
        self._leftovers.__exit__(kind, error, trace)

    def start(self, name: str, *options: str, target: str = "", before: tuple[str, ...] = ()) -> None:
        """Starts a node process with options such as ``"--compile", "2"``; it takes work some seconds later.

        ``target`` "" is the target of the constructor. ``before`` is a command that executes the node's
        command, such as env or unshare with their arguments.
        """
        of_all = ("--target", target or self._target, "--name", name, "--db", self.url)
        self.start_command(name, ("fleet", "worker", *of_all, *options), before)

    def start_command(self, name: str, options: tuple[str, ...], before: tuple[str, ...] = ()) -> None:
        """Starts ``tuner`` with command-line options as a child process called ``name``, with a log file.

        ``options`` are all words after ``tuner``, the command first: ``("fleet", "status")``. ``before`` is a
        command that executes it, such as env with its arguments.
        """
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self.command(*options, before=before), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def command(self, *options: str, before: tuple[str, ...] = ()) -> list[str]:
        """Returns the command line that runs ``tuner`` with options, marked as a child of this object.

        The mark is an environment variable, by which processes that are left over are found. ``before`` is a
        command that executes tuner, such as unshare with its arguments.
        """
        # killed processes leave temporary files
        variables = (f"{MARK}={self._mark}", f"TMPDIR={self.folder}")
        return ["env", *variables, *before, sys.executable, "-m", "tuner", *options]

    def wait_until_ready(self, *names: str) -> None:
        """Waits until all named nodes take work.

        Raises TunerError for a node whose process ends, and after 120 s (READY_LIMIT_S).
        """
        give_up_s = time.monotonic() + READY_LIMIT_S
        with session(self.url) as connection:
            lease_s = read_settings(connection).lease_s
            while missing := set(names) - _at_work(connection, lease_s):
                ended = [name for name in missing if self.has_ended(name)]
                if ended or time.monotonic() > give_up_s:
                    raise TunerError(
                        f"fleet: node {min(ended or missing)}: {self.last_line(min(ended or missing))}"
                    )
                time.sleep(LOOK_S)

    def has_ended(self, name: str) -> bool:
        """Returns whether the process called ``name`` has ended."""
        return self._processes[name].poll() is not None

    def wait(self, name: str, limit_s: float) -> int:
        """Waits for the end of the process called ``name``; returns its exit status.

        Raises TunerError if it does not end within ``limit_s`` seconds.
        """
        try:
            return self._processes[name].wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise TunerError(f"{name}: did not end within {limit_s:g} s") from error

    def process(self, name: str) -> int:
        """Returns the process id of the process called ``name``."""
        return self._processes[name].pid

    def ask_to_end(self, name: str) -> None:
        """Sends SIGTERM to the node called ``name``: it ends after its current work."""
        self._processes[name].send_signal(signal.SIGTERM)

    def kill(self, name: str) -> None:
        """Kills the process called ``name`` by SIGKILL and waits for its end."""
        self._processes[name].kill()
        self._processes[name].wait()

    def said(self, name: str) -> str:
        """Returns all that the process called ``name`` has printed so far, on stdout and stderr."""
        return self._log(name).read_text(errors="replace")

    def last_line(self, name: str) -> str:
        """Returns the last line that the process called ``name`` has printed, hints left out.

        "it said nothing" where there is none.
        """
        return last_line(self.said(name))

    def orphans(self, within_s: float = ORPHAN_LIMIT_S) -> tuple[int, ...]:
        """Waits until these nodes and drivers, and all that they started, have ended; ``within_s`` at most.

        Returns the ids of the processes that are left, nodes that still run among them; () for none.
        """
        give_up_s = time.monotonic() + within_s
        while (found := marked(self._mark)) and time.monotonic() < give_up_s:
            time.sleep(LOOK_S)
        return found

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


def _at_work(connection: "Connection", lease_s: float) -> set[str]:
    return {seen.node.name for seen in tables.nodes(connection) if not seen.is_lost(lease_s)}


LEASE_S: Final = 10.0
END_LIMIT_S: Final = 30.0  # that a node may need for its current work
NODES: Final = (
    ("compile-1", ("--compile", "1")),
    ("compile-2", ("--compile", "1")),
    ("measure", ("--measure",)),
)


@contextmanager
def local_fleet(target: str, say: Callable[[str], None]) -> Iterator[LocalNodes]:
    """Runs a fleet on this machine for a ``with`` block: a PostgreSQL server and three nodes for ``target``.

    Two nodes compile, one measures; the block gets their processes. All end after the block. ``say`` is
    called with lines of progress. Raises TunerError where a package or program is missing, or where a process
    outlives the fleet.
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
            _end(nodes, names)
    left = nodes.orphans()
    if left:
        raise TunerError(f"fleet: its processes {', '.join(map(str, left))} are left after its end")
    say("nodes and server have ended; their folders are gone")


def _end(nodes: LocalNodes, names: list[str]) -> None:
    for name in names:
        nodes.ask_to_end(name)
    for name in names:
        nodes.wait(name, END_LIMIT_S)
