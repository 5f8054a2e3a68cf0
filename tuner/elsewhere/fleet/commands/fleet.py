"""``tuner fleet``: sets up, starts, drains and cancels what machines do for runs of other machines."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.main import DONE, FAILED, Commands
from tuner.cli.options import CampaignNumber, RunOrCampaign, backends_of, database_option, open_store
from tuner.core.candidate import TargetName
from tuner.core.errors import unknown_value
from tuner.core.serialization import count_text
from tuner.elsewhere.fleet import queues, tables
from tuner.elsewhere.fleet.commands.demo import demo
from tuner.elsewhere.fleet.commands.node_scripts import script
from tuner.elsewhere.fleet.commands.status import status
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.node import NodeRequest, run_node
from tuner.elsewhere.fleet.server import as_role, session
from tuner.elsewhere.fleet.tables import FleetSettings
from tuner.results.database_name import database_text, which_database
from tuner.targets.backends import resolve_target

if TYPE_CHECKING:
    from tuner.targets.backends import Backends
    from tuner.targets.target import Target


MIB = 1 << 20


@click.group(cls=Commands)
def fleet() -> None:
    """Lets other machines compile and measure; all of them use the PostgreSQL database of the results.

    Example: tuner fleet up --db postgresql://tuner@db/tuner
    """


@fleet.command()
@click.option(
    "--lease", type=float, default=30.0, show_default=True, help="Seconds until a silent node is lost."
)
@click.option("--role", metavar="NAME", help="Lets this role of the server do what a node does, and no more.")
@database_option
def up(lease: float, role: str | None, database: str | None) -> None:
    """Sets a fleet up in a PostgreSQL database, or changes the settings of this fleet.

    Example: tuner fleet up --db postgresql://tuner@db/tuner --role fleet_worker
    """
    install(which_database(database), FleetSettings(lease), role)
    arguments = database_text(database and as_role(database, role))
    print(f"the fleet is set up; a node that says nothing for {lease:g} s has lost its work")
    print("where it compiles, where it measures, and where you are:")
    print(f"  tuner fleet worker --compile 4{arguments}")
    print(f"  tuner fleet worker --measure{arguments}")
    print(f"  tuner tune matmul 512x512x512 --fleet{database_text(database)}")


@fleet.command()
@click.option(
    "--target",
    default="auto",
    show_default=True,
    help="Target of the node: auto, one of 'tuner targets', replay:FILE.",
)
@click.option("--compile", "slots", type=int, default=0, help="Candidates to compile at once. Default: none.")
@click.option("--measure", "has_device", is_flag=True, help="Measure, on the one device here.")
@click.option("--name", default="", help="Name of this node. Default: host and process.")
@click.option("--device", default="", help="That it alone measures on. Default: the host's.")
@click.option(
    "--keep-free",
    "keep_free_mib",
    type=int,
    default=64,
    show_default=True,
    metavar="MIB",
    help="Takes no work where temporary files have less room.",
)
@database_option
@click.pass_context
def worker(
    context: click.Context,
    target: str,
    slots: int,
    has_device: bool,
    name: str,
    device: str,
    keep_free_mib: int,
    database: str | None,
) -> None:
    """Starts a node, which compiles or measures for a fleet until it is drained or stopped.

    SIGTERM and Ctrl-C stop it.

    Example: tuner fleet worker --compile 8 --db postgresql://fleet_worker@db/tuner
    """
    source, wanted = _measurement_of(target, backends_of(context))
    request = NodeRequest(wanted, name, slots, has_device, device, keep_free_mib * MIB)
    is_well = run_node(which_database(database), request, source, lambda line: print(line, file=sys.stderr))
    context.exit(DONE if is_well else FAILED)


def _measurement_of(text: str, backends: "Backends") -> "tuple[Target, TargetName]":
    asked = TargetName.parse(text)
    if not asked.has_machine:
        return backends.replay_of(Path(asked.detail))
    wanted = resolve_target(text, backends)
    return backends.target(wanted), wanted


@fleet.command()
@click.argument("node")
@database_option
def drain(node: str, database: str | None) -> None:
    """Ends a node of a fleet after its current work; SIGTERM does the same.

    NODE is a name that 'tuner fleet status' lists.

    Example: tuner fleet drain gpu-3
    """
    with session(which_database(database)) as connection:
        if not tables.drain(connection, node):
            raise unknown_value(
                "node", node, [stored_node.node.name for stored_node in tables.stored_nodes(connection)]
            )
    print(f"{node} ends after its current work")


@fleet.command()
@click.argument("run", type=RunOrCampaign())
@database_option
def cancel(run: int, database: str | None) -> None:
    """Cancels the jobs of a run, or of campaign:N, on a fleet; 'tuner tune --resume' continues it.

    What is stored stays.

    Example: tuner fleet cancel 7
    """
    is_campaign = isinstance(run, CampaignNumber)
    with open_store(database) as store:
        runs = store.campaign(run).runs if is_campaign else (store.run(run),)
    with session(which_database(database)) as connection:
        count = sum(queues.cancel_run(connection, stored.uuid) for stored in runs)
        for stored in runs:
            tables.notify_driver(connection, stored.uuid)
    print(f"cancelled {count_text(count, 'job')} of {'campaign' if is_campaign else 'run'} {run}")


for command in (demo, script, status):
    fleet.add_command(command)
