"""``tuner fleet script``: prints scripts that start nodes by SSH, SLURM or Kubernetes."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from tuner.cli.main import Commands
from tuner.cli.options import database_option, json_option, print_json

if TYPE_CHECKING:
    from tuner.fleet.scripts.node_command import NodeCommand

P = ParamSpec("P")
R = TypeVar("R")


@click.group(cls=Commands)
def script() -> None:
    """Prints what starts fleet nodes on other machines: SSH commands, a SLURM job, a Kubernetes manifest.

    Example: tuner fleet script slurm --compile 16 --nodes 4 --db postgresql://tuner@db/tuner
    """


def node_options(function: Callable[P, R]) -> Callable[P, R]:
    """Adds --target, --compile, --measure, --program, --db and --json, which every node has, to a command."""
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


def places_options(function: Callable[P, R]) -> Callable[P, R]:
    """Adds --nodes (the number of nodes) and --cores (the processors of each node) to a click command."""
    for option in (
        click.option(
            "--cores", type=int, help="Processors of a node. Default: as many as it compiles at once."
        ),
        click.option("--nodes", type=int, default=1, show_default=True, help="Number of nodes."),
    ):
        function = option(function)
    return function


certificates_option = click.option(
    "--certificates",
    default="",
    metavar="FOLDER",
    help="On the node, with ca.crt, tls.crt and tls.key: TLS both ways.",
)


@script.command()
@click.argument("hosts", nargs=-1, required=True)
@certificates_option
@node_options
def ssh(hosts: tuple[str, ...], database: str | None, as_json: bool, **arguments: Any) -> None:
    """Prints, for each host, an SSH command that starts a fleet node. Nodes stay when the connection ends.

    Example: tuner fleet script ssh build1 build2 --compile 16 --db postgresql://tuner@db/tuner
    """
    from tuner.fleet.scripts.ssh import ssh_lines

    _print("ssh", ssh_lines(_command(database, **arguments), hosts), as_json)


@script.command()
@certificates_option
@click.option("--time", default="04:00:00", show_default=True, help="Until SLURM ends the nodes.")
@click.option("--sbatch", "options", multiple=True, help="Another option of sbatch: --sbatch=--partition=gpu")
@places_options
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
    from tuner.fleet.scripts.slurm import slurm_job

    command = _command(database, **arguments)
    _print("slurm", slurm_job(command, nodes, _cores(cores, command), time, options), as_json)


@script.command()
@click.option("--image", required=True, help="Container image that has tuner with the extra fleet.")
@click.option("--name", default="tuner-fleet", show_default=True, help="Of the Deployment.")
@click.option("--secret", default="", help="Secret with ca.crt, tls.crt and tls.key: TLS both ways.")
@places_options
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
    from tuner.fleet.scripts.kubernetes import MOUNTED, kubernetes_manifest

    command = _command(database, certificates=MOUNTED if secret else "", **arguments)
    manifest = kubernetes_manifest(command, name, nodes, _cores(cores, command), image, secret)
    _print("kubernetes", manifest, as_json)


def _command(database: str | None, **arguments: Any) -> "NodeCommand":
    from tuner.fleet.scripts.node_command import NodeCommand
    from tuner.run_history.which_database import which_database

    command = NodeCommand(which_database(database), **arguments)
    if command.has_address_of_this_machine:
        print("note: only this machine finds that database: name its host in --db", file=sys.stderr)
    return command


def _cores(asked: int | None, command: "NodeCommand") -> int:
    return max(1, command.slots) if asked is None else asked


def _print(kind: str, text: str, as_json: bool) -> None:
    print_json({"kind": kind, "text": text}) if as_json else print(text, end="")
