"""``tuner fleet status``: what nodes, devices and queues are doing now."""

import time
from typing import TYPE_CHECKING

import click

from tuner.cli.options import database_option, debug_option, json_option, print_json
from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.fleet.status import FleetStatus


@click.command()
@click.option("--watch", "every_s", type=float, metavar="SECONDS", help="Print it again and again.")
@database_option
@json_option
@debug_option
def status(every_s: float | None, database: str | None, as_json: bool) -> None:
    """Tells of nodes, devices and queues now, and why a job waits.

    Example: tuner fleet status --watch 2
    """
    from tuner.cli.output.fleet_tables import status_document, status_text
    from tuner.tuning.which_database import which_database

    if every_s is not None and not every_s > 0:
        raise UsageError(f"watch: found {every_s:g} s, allowed more than 0")
    while True:
        found = found_status(which_database(database))
        if as_json:
            print_json(status_document(found))
        else:
            print(status_text(found))
        if every_s is None:
            return
        time.sleep(every_s)
        click.clear()


def found_status(url: str) -> "FleetStatus":
    """Reads the status of the fleet that meets in a database."""
    from tuner.fleet.server import session
    from tuner.fleet.settings import read_settings
    from tuner.fleet.status import fleet_status

    with session(url) as connection:
        return fleet_status(connection, read_settings(connection).lease_s)
