"""``tuner verify-resume --fleet``: every part of a fleet of real processes here fails while a run lasts."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.cli.options import print_json
from tuner.output.formatting import count_text, wrapped
from tuner.output.run_difference import run_difference_document, run_difference_lines

if TYPE_CHECKING:
    from tuner.core.runs import RunSettings
    from tuner.fleet.resume_check import FleetCheck
    from tuner.tuning.composition import Composition


def verify_on_fleet(
    composition: "Composition", file: Path, settings: "list[RunSettings]", runs: int, seed: int, as_json: bool
) -> bool:
    """Checks runs and prints what was found; returns whether all were exact."""
    started_s = time.monotonic()
    checks = []
    click.echo(f"0/{runs} begins with runs that nothing happens to", err=True)
    for number, check in enumerate(_checks(composition, file, settings, runs, seed), start=1):
        checks.append(check)
        click.echo("\n".join(wrapped([f"{number}/{runs} {_line(check)}"])), err=True)
    _print(file, checks, time.monotonic() - started_s, as_json)
    return all(check.is_exact for check in checks)


def _checks(
    composition: "Composition", file: Path, settings: "list[RunSettings]", runs: int, seed: int
) -> "Iterator[FleetCheck]":
    import numpy as np

    from tuner.fleet.install import install
    from tuner.fleet.local_postgres import server
    from tuner.fleet.resume_check import LEASE_S, check_fleet
    from tuner.fleet.server import require_packages
    from tuner.fleet.settings import FleetSettings
    from tuner.tuning.resume_check import unbroken_trials

    require_packages()
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name, server() as url:
        install(url, FleetSettings(LEASE_S))
        unbroken = [unbroken_trials(each, composition, Path(name)) for each in settings[:runs]]
        for number in range(runs):
            place = number % len(settings)
            yield check_fleet(url, settings[place], file, unbroken[place], rng)


def _print(file: Path, checks: "list[FleetCheck]", seconds: float, as_json: bool) -> None:
    found = [difference for check in checks for difference in check.differences]
    document = {
        "recording": str(file),
        "runs": len(checks),
        "faults": sum(len(check.faults) for check in checks),
        "trials": sum(check.trials for check in checks),
        "samplers": sorted({check.sampler for check in checks}),
        "repeated": sum(check.repeated for check in checks),
        "overlaps": sum(check.overlaps for check in checks),
        "orphans": sum(check.orphans for check in checks),
        "strange": sum(check.strange for check in checks),
        "seconds": seconds,
    }
    if as_json:
        print_json({**document, **run_difference_document(found)})
        return
    print(f"recording    {file}")
    faults = count_text(sum(len(check.faults) for check in checks), "fault")
    print(f"runs         {len(checks)} with {faults} in {seconds:.0f} s")
    print(f"trials       {document['trials']}, each compared with that of a run on one machine")
    print(f"done again   {document['repeated']} pieces of work, allowed one for each fault")
    print(f"overlaps     {document['overlaps']} of timings on one device")
    print(f"orphans      {document['orphans']}")
    print(f"strange      {document['strange']} done by a node of another compiler")
    print("\n".join(run_difference_lines(found)))


def _line(check: "FleetCheck") -> str:
    counts = (count_text(len(check.differences), "difference"), f"{check.repeated} done again")
    return f"{check.sampler}: {', '.join((*check.faults, count_text(check.trials, 'trial'), *counts))}"
