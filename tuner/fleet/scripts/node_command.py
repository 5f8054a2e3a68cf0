"""The command that starts a node, and its environment."""

import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from tuner.core.address_secrets import has_secret
from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.fleet.server import server_of
from tuner.run_history.which_database import VARIABLE

DRAIN_S: Final = 120  # from the first signal until a node is killed: time to finish its current work
LOCAL_HOSTS: Final = ("", "localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class NodeCommand:
    """The command that starts a node on another machine, with the environment variables that it needs.

    Raises UsageError for options that no node accepts, and for a database URL with a password.
    """

    url: str  # of the fleet's database, without a password: others read scripts
    target: str = "cpu"
    slots: int = 0  # candidates compiled at once
    has_device: bool = False  # it measures, as the only node of its device
    certificates: str = ""  # folder on the node, of ca.crt, tls.crt and tls.key
    program: str = "tuner"

    def __post_init__(self) -> None:
        """Raises here the errors that a node would report on another machine."""
        server_of(self.url)
        if has_secret(self.url):
            raise UsageError(
                "fleet: the database's URL holds a password, and others can read scripts: use "
                "certificates, or ~/.pgpass on the nodes"
            )
        if self.slots < 0:
            raise UsageError(f"compile: found {self.slots}, allowed 1 or more")
        if not self.slots and not self.has_device:
            raise UsageError("fleet: a node has nothing to do", "--compile N, --measure or both")
        one_line("target", self.target)
        one_line("program", self.program)
        if self.certificates:
            one_line("certificates", self.certificates)

    @property
    def words(self) -> tuple[str, ...]:
        """Returns the program and its arguments, such as tuner fleet worker --target cpu --measure.

        The database is not among them: other users of a machine see arguments.
        """
        compile_options = ("--compile", str(self.slots)) if self.slots else ()
        measure_options = ("--measure",) if self.has_device else ()
        return (self.program, "fleet", "worker", "--target", self.target, *compile_options, *measure_options)

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """Returns (name, value) of the environment variables of the node: database and certificates.

        Those that begin with PG are read by PostgreSQL's library.
        """
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
        """Returns the environment variables of the node as shell assignments, ``NAME=value``.

        A value is quoted where a shell needs it.
        """
        return tuple(f"{name}={shlex.quote(value)}" for name, value in self.environment)

    @property
    def needs_gpu(self) -> bool:
        """True if the node measures on a GPU."""
        return self.has_device and TargetName.parse(self.target).is_on_gpu

    @property
    def has_address_of_this_machine(self) -> bool:
        """True if the database's URL names a server of this machine only: localhost or a socket's path.

        On another machine such a URL means another server.
        """
        hosts = self._options.get("host", [self._parts.hostname or ""])
        return all(host in LOCAL_HOSTS or host.startswith("/") for host in hosts)

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def _options(self) -> dict[str, list[str]]:
        return parse_qs(self._parts.query)


def one_line(name: str, text: str) -> str:
    """Returns ``text``. Raises UsageError for an empty text, and for line breaks or other control characters.

    The message begins with ``name``.
    """
    if not text or not text.isprintable():
        raise UsageError(f"{name}: found {text!r}, allowed a text of one line")
    return text


def at_least_one(name: str, number: int) -> int:
    """Returns ``number``. Raises UsageError for less than 1; the message begins with ``name``."""
    if number < 1:
        raise UsageError(f"{name}: found {number}, allowed 1 or more")
    return number
