"""``tuner fleet status``: what nodes, devices and job queues are doing now."""

import time
from typing import TYPE_CHECKING

import click

from tuner.cli.main import DONE, FAILED
from tuner.cli.options import database_option, json_option, print_found
from tuner.cli.screen import screen_columns
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.fleet.status import FleetStatus


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
    from tuner.cli.fleet_tables import status_document, status_text
    from tuner.run_history.which_database import database_text, which_database

    if every_s is not None and not every_s > 0:
        raise UsageError(f"watch: found {every_s:g} s, allowed more than 0")
    if has_check:
        context.exit(_check(which_database(database), rounds, as_json))
    while True:
        found = found_status(which_database(database))
        text = status_text(found, screen_columns(), database_text(database))
        print_found(as_json, status_document(found), text)
        if every_s is None:
            return
        time.sleep(every_s)
        click.clear()


def _check(url: str, rounds: int, as_json: bool) -> int:
    """Measures how much the nodes of this host disturb measurements; prints it, returns the exit code."""
    import socket

    import numpy as np

    from tuner.cli.fleet_tables import check_line
    from tuner.core.dataclass_json import encode
    from tuner.fleet.noise_check import check_noise, nodes_to_check
    from tuner.output.formatting import count_text, wrapped

    if rounds < 1:
        raise UsageError(f"rounds: found {rounds}, allowed 1 or more")
    now = found_status(url)
    rng = np.random.default_rng(0)
    nodes = nodes_to_check(now, socket.gethostname())
    click.echo(f"{count_text(len(nodes), 'node')}, {count_text(rounds, 'round')} of 3 s each", err=True)
    checks = [check_noise(node, rounds, now.lease_s, rng) for node in nodes]
    print_found(as_json, [encode(check) for check in checks], *wrapped(map(check_line, checks)))
    return FAILED if any(check.exceeds_limit for check in checks) else DONE


def found_status(url: str) -> "FleetStatus":
    """Returns the status of the fleet whose job queue is in the database at ``url``."""
    from tuner.fleet.server import session
    from tuner.fleet.settings import read_settings
    from tuner.fleet.status import fleet_status

    with session(url) as connection:
        return fleet_status(connection, read_settings(connection).lease_s)
