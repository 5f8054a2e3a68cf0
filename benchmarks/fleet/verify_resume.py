"""``verify-resume --fleet``: every part of a fleet of real local processes fails during a run."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.fleet.fault_check import LEASE_S, FleetCheck, check_fleet
from benchmarks.resumed_runs import uninterrupted_trials
from tuner.core.runs import RunSettings
from tuner.core.serialization import count_text
from tuner.elsewhere.fleet.install import install
from tuner.elsewhere.fleet.local_fleet import server
from tuner.elsewhere.fleet.server import require_packages
from tuner.elsewhere.fleet.tables import FleetSettings
from tuner.targets.backends import Backends


def fleet_checks(
    backends: Backends, file: Path, settings: list[RunSettings], runs: int, seed: int
) -> Iterator[FleetCheck]:
    """Yields the check of each run on a fleet started for them. Raises TunerError without PostgreSQL."""
    require_packages()
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name, server() as url:
        install(url, FleetSettings(LEASE_S))
        uninterrupted = [uninterrupted_trials(each, backends, Path(name)) for each in settings[:runs]]
        for number in range(runs):
            place = number % len(settings)
            yield check_fleet(url, settings[place], file, uninterrupted[place], rng)


def fleet_line(check: FleetCheck) -> str:
    """Returns one run as a line."""
    counts = (count_text(len(check.differences), "difference"), f"{check.repeated} done again")
    return f"{check.sampler}: {', '.join((*check.faults, count_text(check.trials, 'trial'), *counts))}"


def fleet_summary(checks: list[FleetCheck], seconds: float) -> tuple[dict[str, int], tuple[str, ...]]:
    """Returns the counts of all runs, and the same as lines."""
    names = ("trials", "repeated", "overlaps", "orphans", "strange")
    counts = {name: sum(getattr(check, name) for check in checks) for name in names}
    faults = sum(len(check.faults) for check in checks)
    return {"faults": faults, **counts}, (
        f"runs         {len(checks)} with {count_text(faults, 'fault')} in {seconds:.0f} s",
        f"trials       {counts['trials']}, each compared with that of a run on one machine",
        f"done again   {counts['repeated']} pieces of work, allowed one for each fault",
        f"overlaps     {counts['overlaps']} of timings on one device",
        f"orphans      {counts['orphans']}",
        f"strange      {counts['strange']} done by a node of another compiler",
    )
