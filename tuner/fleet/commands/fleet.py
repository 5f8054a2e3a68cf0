"""``tuner fleet``: sets up and controls machines that serve runs; ``demo`` tries this on one machine."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from tuner.cli.main import DONE, FAILED, Commands, screen_columns
from tuner.cli.options import CampaignNumber, RunOrCampaign, backends_of, database_option, open_store
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError, unknown_value
from tuner.fleet import queues, tables
from tuner.fleet.commands.status import found_status, script, status, status_text
from tuner.fleet.install import install
from tuner.fleet.local_fleet import local_fleet
from tuner.fleet.node import NodeRequest, run_node
from tuner.fleet.server import as_role, session
from tuner.fleet.tables import FleetSettings
from tuner.results.database_name import database_text, which_database
from tuner.results.output.formatting import count_text
from tuner.targets.backends import resolve_target

if TYPE_CHECKING:
    from tuner.fleet.local_fleet import LocalNodes
    from tuner.targets.backends import Backends
    from tuner.targets.target import Target


LOOK_S: Final = 0.2
END_LIMIT_S: Final = 30.0  # the time that a run may need to end after an interrupt
MIB = 1 << 20


@click.command()
@click.argument("operation", default="matmul")
@click.argument("shape", metavar="[Bx]MxNxK", default="256x256x256")
@click.option("--trials", type=int, default=24, show_default=True, help="Of the run.")
@click.option("--target", default="cpu", show_default=True, help="cpu, cuda:sm_90, replay:FILE, ...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the best script here."
)
def demo(operation: str, shape: str, trials: int, target: str, output: Path | None) -> None:
    """Tries a fleet on this machine: starts PostgreSQL, two nodes that compile and one that measures, tunes.

    Everything that it made is removed at the end, except the script in FILE. It needs the distribution's
    PostgreSQL (Debian: postgresql) and tuner's extra 'fleet'.

    Example: tuner fleet demo matmul 48x64x40
    --target replay:tuner/space/recorded/matmul_48x64x40.t4.json.gz --trials 4
    """
    if trials < 1:
        raise UsageError(f"trials: found {trials}, allowed 1 or more")
    began_s = time.monotonic()
    with local_fleet(target, lambda line: print(line, file=sys.stderr)) as nodes:
        what = (operation, shape, "--target", target, "--db", nodes.url)
        _tune(nodes, ("tune", *what, "--trials", str(trials), "--fleet"))
        if output is not None:
            _require_end(_started(nodes, ("export", *what, "-o", str(output))))
    print(f"all of it took {time.monotonic() - began_s:.0f} s", file=sys.stderr)


def _tune(nodes: "LocalNodes", options: tuple[str, ...]) -> None:
    process = _started(nodes, options, stdout=subprocess.PIPE)
    assert process.stdout is not None
    reader = threading.Thread(target=_print_result, args=(process.stdout, nodes.url))
    reader.start()
    try:
        is_shown = False
        while process.poll() is None:
            status = None if is_shown else found_status(nodes.url)
            # before the first trial a device measures the baseline
            if status is None:
                doing = []
            else:
                doing = [device.doing for device in status.devices if device.doing is not None]
            if status is not None and any(work.number >= 0 for work in doing):
                print(f"\ntuner fleet status:\n{status_text(status, screen_columns())}\n", flush=True)
                is_shown = True
            time.sleep(LOOK_S)
    finally:
        _require_end(process)
        reader.join()


def _print_result(lines: IO[bytes], url: str) -> None:
    """Prints a command's output without lines that name ``url``: this database ends with the fleet."""
    with lines:
        for line in lines:
            text = line.decode()
            if url not in text:
                print(text, end="", flush=True)


def _started(
    nodes: "LocalNodes", options: tuple[str, ...], stdout: int | None = None
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(nodes.command(*options), stdin=subprocess.DEVNULL, stdout=stdout)


def _require_end(process: "subprocess.Popen[bytes]") -> None:
    """Waits for a command. Raises TunerError if the command failed; its own output says why."""
    try:
        code = process.wait(None if sys.exc_info()[0] is None else END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if code != 0:
        raise TunerError(f"demo: a command ended with exit code {code}")


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

    Example: tuner fleet drain gpu-3
    """
    with session(which_database(database)) as connection:
        if not tables.drain(connection, node):
            raise unknown_value(
                "node", node, [stored_node.node.name for stored_node in tables.stored_nodes(connection)]
            )
    print(f"{node} ends after what it has")


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
