"""Options of a run on a fleet."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from tuner.core.errors import UsageError

if TYPE_CHECKING:
    from tuner.fleet.driver import FleetRequest

P = ParamSpec("P")
R = TypeVar("R")
FLAGS = {"fleet_machine": "--machine", "on": "--on", "devices": "--devices", "priority": "--priority"}


def fleet_options(function: Callable[P, R]) -> Callable[P, R]:
    """Adds --fleet, --machine, --on, --devices and --priority to a click command."""
    for option in (
        click.option("--priority", type=int, help="With --fleet: larger goes first. Default: 0."),
        click.option("--devices", type=int, help="With --fleet: devices of the run. Default: 1."),
        click.option("--machine", "fleet_machine", help="With --fleet: class of machine to measure on."),
        click.option(
            "--on",
            metavar="A,B",
            help="With --fleet: classes of machines; all measure what the first one's run proposes.",
        ),
        click.option("--fleet", "has_fleet", is_flag=True, help="Nodes of tuner fleet compile and measure."),
    ):
        function = option(function)
    return function


def popped_fleet(options: dict[str, Any], database: str | None) -> "FleetRequest | None":
    """Removes the fleet's options from ``options`` and returns the request; None without --fleet.

    Sets ``options["workers"]``, unless given, to 2 for one device, else to twice the number of devices plus
    1. Raises UsageError for a database that is not on a server, missing packages, --machine together with
    --on, fewer than two classes in --on, --devices below 1, and options that need --fleet.
    """
    given = {flag: options.pop(name) for name, flag in FLAGS.items()}
    if not options.pop("has_fleet"):
        for flag, found in given.items():
            if found is not None:
                raise UsageError(f"{flag} needs --fleet")
        return None
    from tuner.fleet.driver import FleetRequest
    from tuner.fleet.kind import pending_limit
    from tuner.fleet.server import require_packages, server_of
    from tuner.run_history.which_database import which_database

    url = which_database(database)
    server_of(url)
    require_packages()
    devices = 1 if given["--devices"] is None else given["--devices"]
    on = _classes(given["--on"])
    if on and given["--machine"] is not None:
        raise UsageError("--machine and --on cannot be combined")
    machine = on[0] if on else given["--machine"] or ""
    request = FleetRequest(url, devices, given["--priority"] or 0, on, machine)
    if options["workers"] is None:
        options["workers"] = pending_limit(request.devices) - 1
    return request


def _classes(options: str | None) -> tuple[str, ...]:
    """Returns the machine classes in a comma-separated list. Raises UsageError for fewer than two."""
    if options is None:
        return ()
    found = tuple(dict.fromkeys(text.strip() for text in options.split(",") if text.strip()))
    if len(found) < 2:
        raise UsageError(f"--on: found {options!r}, allowed two or more classes of machines: h200,a100")
    return found
