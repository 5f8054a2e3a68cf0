"""``tuner fleet status``: the nodes, devices and job queues of a fleet as tables or JSON; noise checks."""

import time
from string import ascii_uppercase
from typing import Any

import click

from tuner.cli.main import DONE, FAILED, screen_columns
from tuner.cli.options import database_option, json_option, print_found
from tuner.core.errors import UsageError
from tuner.core.serialization import count_text, encode
from tuner.elsewhere.fleet.noise_check import ALLOWED, NoiseCheck, check_noise, nodes_to_check
from tuner.elsewhere.fleet.server import session
from tuner.elsewhere.fleet.status import DeviceStatus, FleetStatus, QueueStatus, fleet_status
from tuner.elsewhere.fleet.tables import SeenNode, read_settings
from tuner.elsewhere.fleet.work import COMPILE
from tuner.results.database_name import database_text, which_database
from tuner.results.output.formatting import table_lines, wrapped

NODES = ("node", "state", "target", "compiles", "measures on", "seen", "job queue", "compiler")
DEVICES = ("device", "class of machine", "idle", "now")
QUEUES = ("stage", "of", "now", "wait", "runs", "why they wait")
SPARED = ("job queue", "seen", "target")  # columns of NODES that a narrow terminal loses first


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
        now = read_fleet_status(which_database(database))
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
    now = read_fleet_status(url)
    rng = np.random.default_rng(0)
    nodes = nodes_to_check(now, socket.gethostname())
    click.echo(f"{count_text(len(nodes), 'node')}, {count_text(rounds, 'round')} of 3 s each", err=True)
    checks = [check_noise(node, rounds, now.lease_s, rng) for node in nodes]
    print_found(as_json, list(map(encode, checks)), *wrapped(map(check_line, checks)))
    if any(check.exceeds_limit for check in checks):
        return FAILED
    return DONE


def read_fleet_status(url: str) -> "FleetStatus":
    """Returns the state of the fleet, read from the database at ``url``.

    Raises UsageError for a database without a fleet.
    """
    with session(url) as connection:
        return fleet_status(connection, read_settings(connection).lease_s)


def status_text(status: FleetStatus, columns: int | None = None, database_text: str = "") -> str:
    """Returns the tables of a fleet's nodes, devices and job queues, for a terminal of ``columns`` columns.

    ``columns`` None: any width. ``database_text``: the ``--db`` option with a leading space, for the hint; or
    "".
    """
    letters = _letter_of_builds(status)
    no_node = f"no node; start one with: tuner fleet worker --compile 4 --measure{database_text}"
    nodes = [no_node]
    if status.nodes:
        rows = [(*_node(node, status), letters[node.node.compiler_build]) for node in status.nodes]
        nodes = table_lines(NODES, rows, columns, SPARED)
    devices = ["no device"]
    if status.devices:
        devices = table_lines(DEVICES, [_device(device, status) for device in status.devices], columns)
    jobs = ["no job"]
    if status.queues:
        jobs = table_lines(QUEUES, [_queue(queue, status, letters) for queue in status.queues], columns)
    compilers = wrapped(f"compiler {letter}: {build}" for build, letter in letters.items())
    return "\n\n".join("\n".join(lines) for lines in (nodes, devices, jobs, compilers) if lines)


def _letter_of_builds(status: FleetStatus) -> dict[str, str]:
    """Returns compiler build -> the letter that stands for the build in the tables."""
    builds = {seen.node.compiler_build for seen in status.nodes}
    builds |= {queue.compiler_build for queue in status.queues}
    return {build: _letters(index) for index, build in enumerate(sorted(builds))}


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
