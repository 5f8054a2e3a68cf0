"""``tuner fleet status``, as tables or JSON, and ``tuner fleet script``, which prints scripts of nodes."""

import sys
import time
from collections.abc import Callable
from string import ascii_uppercase
from typing import Any, ParamSpec, TypeVar

import click

from tuner.cli.main import DONE, FAILED, Commands, screen_columns
from tuner.cli.options import database_option, json_option, print_found, print_json
from tuner.core.errors import UsageError
from tuner.core.serialization import encode
from tuner.fleet.commands.node_scripts import MOUNTED, NodeCommand, kubernetes_manifest, slurm_job, ssh_lines
from tuner.fleet.noise_check import ALLOWED, NoiseCheck, check_noise, nodes_to_check
from tuner.fleet.server import session
from tuner.fleet.status import DeviceStatus, FleetStatus, QueueStatus, fleet_status
from tuner.fleet.tables import SeenNode, read_settings
from tuner.fleet.work import COMPILE
from tuner.results.database_name import database_text, which_database
from tuner.results.output.formatting import count_text, table_lines, wrapped

P = ParamSpec("P")
R = TypeVar("R")
certificates_option = click.option(
    "--certificates",
    default="",
    metavar="FOLDER",
    help="On the node, with ca.crt, tls.crt and tls.key: TLS both ways.",
)
NODES = ("node", "state", "target", "compiles", "measures on", "seen", "job queue", "compiler")
DEVICES = ("device", "class of machine", "idle", "now")
QUEUES = ("stage", "of", "now", "wait", "runs", "why they wait")
SPARED = ("job queue", "seen", "target")  # columns of NODES that a narrow terminal loses first


@click.group(cls=Commands)
def script() -> None:
    """Prints what starts fleet nodes on other machines: SSH commands, a SLURM job, a Kubernetes manifest.

    Example: tuner fleet script slurm --compile 16 --nodes 4 --db postgresql://tuner@db/tuner
    """


def node_options(function: Callable[P, R]) -> Callable[P, R]:
    """Adds every node's options to a command: --target, --compile, --measure, --program, --db, --json."""
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
    """Adds --nodes (number of nodes) and --cores (processors of each node) to a command."""
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


def _print(kind: str, text: str, as_json: bool) -> None:
    print_json({"kind": kind, "text": text}) if as_json else print(text, end="")


@click.command()
@click.option("--watch", "every_s", type=float, metavar="SECONDS", help="Print it again and again.")
@click.option("--check", "has_check", is_flag=True, help="Measure how much a node of this host disturbs it.")
@click.option("--rounds", type=int, default=20, show_default=True, help="With --check: of 3 s for each node.")
@database_option
@json_option
@click.pass_context
def status(
    context: click.Context,
    every_s: float | None,
    has_check: bool,
    rounds: int,
    database: str | None,
    as_json: bool,
) -> None:
    """Shows the nodes, devices and job queues of a fleet, and why jobs wait.

    With --check it times the same work while the process of a node on this host runs and while that process
    is stopped, and exits with 1 where the node slows the work down.

    Example: tuner fleet status --watch 2
    """
    if every_s is not None and not every_s > 0:
        raise UsageError(f"watch: found {every_s:g} s, allowed more than 0")
    if has_check and every_s is not None:
        raise UsageError("--watch cannot be combined with --check")
    if has_check:
        context.exit(_check(which_database(database), rounds, as_json))
    while True:
        now = found_status(which_database(database))
        text = status_text(now, screen_columns(), database_text(database))
        print_found(as_json, status_document(now), text)
        if every_s is None:
            return
        time.sleep(every_s)
        click.clear()


def _check(url: str, rounds: int, as_json: bool) -> int:
    import socket

    import numpy as np

    if rounds < 1:
        raise UsageError(f"rounds: found {rounds}, allowed 1 or more")
    now = found_status(url)
    rng = np.random.default_rng(0)
    nodes = nodes_to_check(now, socket.gethostname())
    click.echo(f"{count_text(len(nodes), 'node')}, {count_text(rounds, 'round')} of 3 s each", err=True)
    checks = [check_noise(node, rounds, now.lease_s, rng) for node in nodes]
    print_found(as_json, list(map(encode, checks)), *wrapped(map(check_line, checks)))
    if any(check.exceeds_limit for check in checks):
        return FAILED
    return DONE


def found_status(url: str) -> "FleetStatus":
    """Reads the state of the fleet from the database at ``url``.

    Raises UsageError for a database without one.
    """
    with session(url) as connection:
        return fleet_status(connection, read_settings(connection).lease_s)


def status_text(status: FleetStatus, columns: int | None = None, database_text: str = "") -> str:
    """Returns the tables of a fleet's nodes, devices and job queues, for a terminal of ``columns`` columns.

    ``columns`` None: any width. ``database_text``: the ``--db`` option with a leading space, for the hint; or
    "".
    """
    compiler_builds = sorted(
        {seen.node.compiler_build for seen in status.nodes}
        | {queue.compiler_build for queue in status.queues}
    )
    letters = {compiler_build: _letters(index) for index, compiler_build in enumerate(compiler_builds)}
    nodes = [(*_node(node, status), letters[node.node.compiler_build]) for node in status.nodes]
    devices = [_device(device, status) for device in status.devices]
    waiting = [_queue(queue, status, letters) for queue in status.queues]
    no_node = f"no node; start one with: tuner fleet worker --compile 4 --measure{database_text}"
    parts = (
        table_lines(NODES, nodes, columns, SPARED) if nodes else [no_node],
        table_lines(DEVICES, devices, columns) if devices else ["no device"],
        table_lines(QUEUES, waiting, columns) if waiting else ["no job"],
        wrapped(f"compiler {letter}: {compiler_build}" for compiler_build, letter in letters.items()),
    )
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _letters(index: int) -> str:
    first = "" if index < len(ascii_uppercase) else _letters(index // len(ascii_uppercase) - 1)
    return first + ascii_uppercase[index % len(ascii_uppercase)]


def check_line(check: NoiseCheck) -> str:
    """Returns the result of a noise check in one line: whether the node disturbs, and by how much."""
    low, high = check.longer.interval
    if check.is_quiet:
        finding = "does not disturb"
    elif check.exceeds_limit:
        finding = "disturbs"
    else:
        finding = "unclear"
    return (
        f"{check.node}: {finding}: times next to it {check.longer.median:+.2%} (99 % interval {low:+.2%} .. "
        f"{high:+.2%}), allowed {ALLOWED:.1%}; without it twice: {check.longer.noise:.2%} apart; "
        f"{count_text(check.rounds, 'round')}"
    )


def status_document(status: FleetStatus) -> dict[str, Any]:
    """Returns the JSON document of ``tuner fleet status --json``: the status, with a state per node."""
    document: dict[str, Any] = encode(status)
    for fields, seen in zip(document["nodes"], status.nodes, strict=True):
        fields["state"] = status.state_of(seen)
    return document


def _node(seen: SeenNode, status: FleetStatus) -> tuple[str, ...]:
    node = seen.node
    return (
        node.name,
        status.state_of(seen),
        node.target,
        f"{node.slots} at once" if node.slots else "-",
        node.device or "-",
        f"{seen.silent_s:.0f} s ago",
        "-" if seen.load is None else f"{seen.load.cpu_share:.1%}, {seen.load.wakeups_per_s:.0f}/s",
    )


def _device(device: DeviceStatus, status: FleetStatus) -> tuple[str, ...]:
    work = device.doing
    now = "waits for work" if work is None else f"{work.text} of {status.run_text(work.run)}"
    return (device.device, device.machine, f"{device.idle_share:.0%}", now)


def _queue(queue: QueueStatus, status: FleetStatus, letters: dict[str, str]) -> tuple[str, ...]:
    of = f"compiler {letters[queue.compiler_build]}" if queue.stage == COMPILE else queue.device
    runs = ", ".join(map(status.run_text, queue.runs)) or "-"
    return (queue.stage, of, str(queue.doing), str(queue.waits), runs, queue.why or "-")
