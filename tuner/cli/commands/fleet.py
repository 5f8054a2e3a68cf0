"""``tuner fleet``: machines that compile and measure for the runs of others."""

import click

from tuner.cli.commands.fleet_script import script
from tuner.cli.options import database_option, debug_option


@click.group()
def fleet() -> None:
    """Lets other machines compile and measure: they meet in the PostgreSQL that holds the history.

    Example: tuner fleet up --db postgresql://tuner@db/tuner
    """


@fleet.command()
@click.option(
    "--lease", type=float, default=30.0, show_default=True, help="Seconds until a silent node is lost."
)
@click.option("--role", metavar="NAME", help="Lets this role of the server do what a node does, and no more.")
@database_option
@debug_option
def up(lease: float, role: str | None, database: str | None) -> None:
    """Sets a fleet up in a database, or changes its settings.

    Example: tuner fleet up --db postgresql://tuner@db/tuner --role fleet_worker
    """
    from tuner.fleet.install import install
    from tuner.fleet.settings import FleetSettings
    from tuner.tuning.which_database import which_database

    install(which_database(database), FleetSettings(lease), role)
    print(f"the fleet is set up; a node that says nothing for {lease:g} s has lost its work")


fleet.add_command(script)
