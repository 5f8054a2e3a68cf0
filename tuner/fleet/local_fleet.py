"""A temporary fleet on this machine: server and nodes, with no process or file left afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tuner.core.errors import TunerError
from tuner.fleet.install import install
from tuner.fleet.local_nodes import LocalNodes
from tuner.fleet.local_postgres import folder_of, server
from tuner.fleet.server import require_packages
from tuner.fleet.settings import FleetSettings

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
