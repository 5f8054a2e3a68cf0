"""How a node of a fleet is started: its words, and what its environment says."""

import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from tuner.core.address_secrets import has_secret
from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.fleet.server import server_of
from tuner.run_history.which_database import VARIABLE

DRAIN_S: Final = 120  # from the first signal until a node is ended: it finishes the work that it has
LOCAL_HOSTS: Final = ("", "localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class NodeCommand:
    """The command of a node. Raises UsageError for words that no node can have."""

    url: str  # of the fleet's database, without a password: others read scripts
    target: str = "cpu"
    seats: int = 0  # candidates compiled at once
    has_device: bool = False  # that it measures on, alone
    certificates: str = ""  # folder on the node, of ca.crt, tls.crt and tls.key
    program: str = "tuner"

    def __post_init__(self) -> None:
        """Refuses here what would be refused on another machine, where nobody looks."""
        server_of(self.url)
        if has_secret(self.url):
            raise UsageError(
                "fleet: found a password in the database's URL, allowed none, since others read scripts: "
                "certificates, or ~/.pgpass on the nodes"
            )
        if self.seats < 0:
            raise UsageError(f"compile: found {self.seats}, allowed 1 or more")
        if not self.seats and not self.has_device:
            raise UsageError("fleet: found a node without work, allowed --compile N, --measure or both")
        one_line("target", self.target)
        one_line("program", self.program)
        if self.certificates:
            one_line("certificates", self.certificates)

    @property
    def words(self) -> tuple[str, ...]:
        """Returns the command. It does not name the database: other users see commands."""
        compile_options = ("--compile", str(self.seats)) if self.seats else ()
        measure_options = ("--measure",) if self.has_device else ()
        return (self.program, "fleet", "worker", "--target", self.target, *compile_options, *measure_options)

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """Returns names and values; PG... are of PostgreSQL's library, which makes every connection."""
        if not self.certificates:
            return ((VARIABLE, self.url),)
        return (
            (VARIABLE, self.url),
            ("PGSSLMODE", "verify-full"),
            ("PGSSLROOTCERT", f"{self.certificates}/ca.crt"),
            ("PGSSLCERT", f"{self.certificates}/tls.crt"),
            ("PGSSLKEY", f"{self.certificates}/tls.key"),
        )

    @property
    def assignments(self) -> tuple[str, ...]:
        """Returns the environment as a shell reads it."""
        return tuple(f"{name}={shlex.quote(value)}" for name, value in self.environment)

    @property
    def needs_gpu(self) -> bool:
        """Tells whether it measures on a GPU."""
        return self.has_device and TargetName.parse(self.target).is_on_gpu

    @property
    def has_address_of_this_machine(self) -> bool:
        """Tells whether every machine would look for the database on itself."""
        hosts = self._options.get("host", [self._parts.hostname or ""])
        return all(host in LOCAL_HOSTS or host.startswith("/") for host in hosts)

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def _options(self) -> dict[str, list[str]]:
        return parse_qs(self._parts.query)


def one_line(name: str, text: str) -> str:
    """Returns a word of a script. Raises UsageError for none, and for one that would begin another line."""
    if not text or not text.isprintable():
        raise UsageError(f"{name}: found {text!r}, allowed a text of one line")
    return text


def at_least_one(name: str, number: int) -> int:
    """Returns a number of things. Raises UsageError for none."""
    if number < 1:
        raise UsageError(f"{name}: found {number}, allowed 1 or more")
    return number
