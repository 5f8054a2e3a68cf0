"""``tuner fleet script``: scripts that start nodes on other machines by SSH, SLURM or Kubernetes."""

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import parse_qs, urlsplit

import click

from tuner.cli.main import Commands
from tuner.cli.options import database_option, json_option, print_json
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.core.passwords import has_secret
from tuner.elsewhere.fleet.server import server_of
from tuner.results.database_name import VARIABLE, which_database
from tuner.results.output.templates import template_environment

DRAIN_S: Final = 120  # from the first signal until a node is killed: time to finish its current work
LOCAL_HOSTS: Final = ("", "localhost", "127.0.0.1", "::1")
MOUNTED: Final = "/etc/tuner-fleet"  # where a pod finds the certificates of a Secret
LOG = "tuner-fleet.log"  # in the folder where SSH begins


@dataclass(frozen=True)
class NodeCommand:
    """The command that starts a node on another machine, with the environment variables that it needs.

    Raises UsageError for a URL that is not of a server or holds a password, for a node without work, and for
    text of more than one line.
    """

    url: str  # of the fleet's database, without a password: others read scripts
    target: str = "cpu"
    slots: int = 0  # candidates compiled at once
    has_device: bool = False  # it measures, as the only node of its device
    certificates: str = ""  # folder on the node, of ca.crt, tls.crt and tls.key
    program: str = "tuner"

    def __post_init__(self) -> None:
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
    def argv(self) -> tuple[str, ...]:
        """Returns program and arguments, without the database: other users of a machine see arguments."""
        compile_options = ("--compile", str(self.slots)) if self.slots else ()
        measure_options = ("--measure",) if self.has_device else ()
        return (self.program, "fleet", "worker", "--target", self.target, *compile_options, *measure_options)

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """Returns the environment variables of the node, (name, value): database URL and certificates."""
        if not self.certificates:
            return ((VARIABLE, self.url),)
        return (
            (VARIABLE, self.url),
            ("PGSSLMODE", "verify-full"),  # those that begin with PG are read by PostgreSQL's library
            ("PGSSLROOTCERT", f"{self.certificates}/ca.crt"),
            ("PGSSLCERT", f"{self.certificates}/tls.crt"),
            ("PGSSLKEY", f"{self.certificates}/tls.key"),
        )

    @property
    def assignments(self) -> tuple[str, ...]:
        return tuple(f"{name}={shlex.quote(value)}" for name, value in self.environment)

    @property
    def needs_gpu(self) -> bool:
        return self.has_device and TargetName.parse(self.target).is_on_gpu

    @property
    def has_address_of_this_machine(self) -> bool:
        """Returns whether the URL names a server for this machine only: localhost, or a socket's path."""
        parts = urlsplit(self.url)
        hosts = parse_qs(parts.query).get("host", [parts.hostname or ""])
        return all(host in LOCAL_HOSTS or host.startswith("/") for host in hosts)


def one_line(name: str, text: str) -> str:
    """Returns ``text``. Raises UsageError, with ``name``, if it is empty or not printable in one line."""
    if not text or not text.isprintable():
        raise UsageError(f"{name}: found {text!r}, allowed a text of one line")
    return text


def at_least_one(name: str, number: int) -> int:
    """Returns ``number``. Raises UsageError, with ``name``, for less than 1."""
    if number < 1:
        raise UsageError(f"{name}: found {number}, allowed 1 or more")
    return number


def kubernetes_manifest(
    command: NodeCommand, name: str, nodes: int, cores: int, image: str, secret: str
) -> str:
    """Returns the YAML manifest of a Deployment whose pods are nodes, for ``kubectl apply``.

    ``secret``: name of a Secret with certificates, which is mounted at MOUNTED; "": none. Raises UsageError
    for fewer than 1 node or core.
    """
    at_least_one("nodes", nodes)
    at_least_one("cores", cores)
    values = {"name": name, "nodes": nodes, "cores": cores, "image": image, "secret": secret}
    return _rendered("kubernetes", node=command, mounted=MOUNTED, drain_s=DRAIN_S, **values)


def slurm_job(command: NodeCommand, nodes: int, cores: int, time: str, options: tuple[str, ...] = ()) -> str:
    """Returns a script for ``sbatch``: a job array, each of whose ``nodes`` jobs is a node of the fleet.

    ``time``: limit of a job, as SLURM writes it ("02:00:00"); DRAIN_S seconds before it, the node is
    signalled. ``options``: further ones of sbatch. Raises UsageError for fewer than 1 node or core, and texts
    of several lines.
    """
    at_least_one("nodes", nodes)
    at_least_one("cores", cores)
    one_line("time", time)
    for option in options:
        one_line("sbatch", option)
    values = {"nodes": nodes, "cores": cores, "time": time, "options": options}
    return _rendered("slurm", node=command, command=shlex.join(command.argv), drain_s=DRAIN_S, **values)


def ssh_lines(command: NodeCommand, hosts: tuple[str, ...]) -> str:
    """Returns a shell script with one line per host, which starts a node there over ssh.

    Raises UsageError for a host that is empty, has control characters, or that ssh would read as an option.
    """
    for host in hosts:
        if host.startswith("-"):
            raise UsageError(f"host: found {host!r}, allowed a name or an address, such as me@build1")
        one_line("host", host)
    remote = f"{' '.join(command.assignments)} nohup {shlex.join(command.argv)} >>{LOG} 2>&1 </dev/null &"
    return _rendered("ssh", hosts=hosts, remote=remote)


def _rendered(template: str, **values: object) -> str:
    """Returns the text of a template of this package; its filters quote a word of a shell, or of YAML."""
    filters: dict[str, Callable[..., str]] = {"shell": shlex.quote, "yaml": json.dumps}  # JSON is YAML
    environment = template_environment(__package__, filters)
    return environment.get_template(f"{template}.j2").render(**values)


P = ParamSpec("P")
R = TypeVar("R")
certificates_option = click.option(
    "--certificates",
    default="",
    metavar="FOLDER",
    help="On the node, with ca.crt, tls.crt and tls.key: TLS both ways.",
)


@click.group(cls=Commands)
def script() -> None:
    """Prints what starts fleet nodes on other machines: SSH commands, a SLURM job, a Kubernetes manifest.

    Example: tuner fleet script slurm --compile 16 --nodes 4 --db postgresql://tuner@db/tuner
    """


def node_options(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: adds every node's options to a click command.

    They are --target, --compile, --measure, --program, --db, --json.
    """
    for option in (
        click.option(
            "--program", default="tuner", show_default=True, help="The command, as the node finds it."
        ),
        click.option("--measure", "has_device", is_flag=True, help="Measure, on the one device there."),
        click.option(
            "--compile", "slots", type=int, default=0, metavar="N", help="Compile N candidates at once."
        ),
        click.option(
            "--target", default="cpu", show_default=True, help="Target of the nodes: cpu, cuda:sm_90, ..."
        ),
        database_option,
        json_option,
    ):
        function = option(function)
    return function


def node_count_options(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: adds --nodes (number of nodes) and --cores (processors of each node) to a click command."""
    for option in (
        click.option(
            "--cores", type=int, help="Processors of a node. Default: as many as it compiles at once."
        ),
        click.option("--nodes", type=int, default=1, show_default=True, help="Number of nodes."),
    ):
        function = option(function)
    return function


@script.command()
@click.argument("hosts", nargs=-1, required=True)
@certificates_option
@node_options
def ssh(hosts: tuple[str, ...], database: str | None, as_json: bool, **arguments: Any) -> None:
    """Prints, for each host, an SSH command that starts a fleet node. Nodes stay when the connection ends.

    Example: tuner fleet script ssh build1 build2 --compile 16 --db postgresql://tuner@db/tuner
    """
    _print("ssh", ssh_lines(_command(database, **arguments), hosts), as_json)


@script.command()
@certificates_option
@click.option("--time", default="04:00:00", show_default=True, help="Until SLURM ends the nodes.")
@click.option("--sbatch", "options", multiple=True, help="Another option of sbatch: --sbatch=--partition=gpu")
@node_count_options
@node_options
def slurm(
    nodes: int,
    cores: int | None,
    time: str,
    options: tuple[str, ...],
    database: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Prints a script for sbatch that starts fleet nodes: a job array, each of whose jobs is a node.

    Example: tuner fleet script slurm --compile 16 --nodes 4 --db postgresql://tuner@db/tuner
    """
    command = _command(database, **arguments)
    _print("slurm", slurm_job(command, nodes, _cores(cores, command), time, options), as_json)


@script.command()
@click.option("--image", required=True, help="Container image that has tuner with the extra fleet.")
@click.option("--name", default="tuner-fleet", show_default=True, help="Of the Deployment.")
@click.option("--secret", default="", help="Secret with ca.crt, tls.crt and tls.key: TLS both ways.")
@node_count_options
@node_options
def kubernetes(
    nodes: int,
    cores: int | None,
    image: str,
    name: str,
    secret: str,
    database: str | None,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Prints a manifest for kubectl apply that starts fleet nodes: a Deployment, each pod a node.

    Example: tuner fleet script kubernetes --image tuner:1 --compile 8 --db postgresql://tuner@db/tuner
    """
    command = _command(database, certificates=MOUNTED if secret else "", **arguments)
    manifest = kubernetes_manifest(command, name, nodes, _cores(cores, command), image, secret)
    _print("kubernetes", manifest, as_json)


def _command(database: str | None, **arguments: Any) -> "NodeCommand":
    command = NodeCommand(which_database(database), **arguments)
    if command.has_address_of_this_machine:
        print("note: only this machine finds that database: name its host in --db", file=sys.stderr)
    return command


def _cores(asked: int | None, command: "NodeCommand") -> int:
    if asked is None:
        return max(1, command.slots)
    return asked


def _print(starter: str, text: str, as_json: bool) -> None:
    print_json({"kind": starter, "text": text}) if as_json else print(text, end="")
