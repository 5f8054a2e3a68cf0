"""``python -m benchmarks verify-resume``: kills real runs, resumes them, and compares their trials."""

import importlib.resources
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.resumed_runs import ResumeCheck, check_resume, settings_on, uninterrupted_trials
from tuner.cli.main import DONE, FAILED
from tuner.cli.options import backends_of, json_option, print_found
from tuner.core.errors import UsageError
from tuner.core.runs import RunSettings
from tuner.core.serialization import count_text
from tuner.results.output.formatting import wrapped
from tuner.targets.backends import Backends

SHIPPED = "matmul_48x64x40.t4.json.gz"
SHOWN = 10  # differences


@click.command("verify-resume")
@click.option(
    "--file", "recording", type=click.Path(path_type=Path), help="Recorded space. Default: a small one."
)
@click.option("--sampler", multiple=True, help="May be repeated. Default: every custom sampler.")
@click.option("--runs", type=int, default=6, show_default=True, help="Runs that are killed and resumed.")
@click.option("--trials", type=int, default=40, show_default=True, help="Of each run.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the search and of the kills.")
@click.option(
    "--fleet",
    "on_fleet",
    is_flag=True,
    help="On a fleet started here, on PostgreSQL: nodes, driver and database fail.",
)
@json_option
@click.pass_context
def verify_resume(
    context: click.Context,
    recording: Path | None,
    sampler: tuple[str, ...],
    runs: int,
    trials: int,
    seed: int,
    on_fleet: bool,
    as_json: bool,
) -> None:
    """Checks that a run killed by kill -9 resumes to the trials of an uninterrupted run.

    Each run is a real 'tuner tune' on a recorded space, in a separate database, killed up to three times,
    then resumed to its end. With --fleet each part of a fleet fails once while the run lasts: what compiles,
    what measures, the driver, the database. Exits with 1 on any difference.

    Example: python -m benchmarks verify-resume --runs 1 --sampler tpe --trials 25
    """
    for name, number, low in (("runs", runs, 1), ("trials", trials, 1), ("seed", seed, 0)):
        if number < low:
            raise UsageError(f"{name}: found {number}, allowed {low} or more")
    shipped = importlib.resources.files("tuner") / "space" / "recorded" / SHIPPED
    file = (recording or Path(str(shipped))).absolute()
    started_s = time.monotonic()
    settings = settings_on(file, sampler, trials, seed)
    ways: Any = (_checks, _line, _summary)
    if on_fleet:
        from benchmarks.fleet import verify_resume as fleet  # needs the extra "fleet"

        ways = (fleet.fleet_checks, fleet.fleet_line, fleet.fleet_summary)
    checks_of, line_of, summary_of = ways
    checks = []
    click.echo(f"0/{runs} begins with runs that nothing happens to", err=True)
    for number, check in enumerate(checks_of(backends_of(context), file, settings, runs, seed), start=1):
        checks.append(check)
        click.echo("\n".join(wrapped([f"{number}/{runs} {line_of(check)}"])), err=True)
    seconds = time.monotonic() - started_s
    counts, lines = summary_of(checks, seconds)
    found = [difference for check in checks for difference in check.differences]
    document = {
        "recording": str(file),
        "runs": len(checks),
        **counts,
        "samplers": sorted({check.sampler for check in checks}),
        "seconds": seconds,
        "differences": len(found),
        "found": [each.text for each in found],
    }
    shown = (f"  {each.text}" for each in found[:SHOWN])
    print_found(as_json, document, f"recording    {file}", *lines, f"differences  {len(found)}", *shown)
    context.exit(DONE if all(check.is_exact for check in checks) else FAILED)


def _checks(
    backends: Backends, file: Path, settings: "list[RunSettings]", runs: int, seed: int
) -> Iterator[ResumeCheck]:
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        uninterrupted = [uninterrupted_trials(each, backends, folder) for each in settings[:runs]]
        for number in range(runs):
            index = number % len(settings)
            database = folder / f"killed_{number}.db"
            yield check_resume(settings[index], file, uninterrupted[index], database, rng)


def _line(check: ResumeCheck) -> str:
    kills, unequal = count_text(check.kills, "time"), count_text(len(check.differences), "difference")
    return f"{check.sampler}: killed {kills}, {count_text(check.trials, 'trial')}, {unequal}"


def _summary(checks: list[ResumeCheck], seconds: float) -> tuple[dict[str, int], tuple[str, ...]]:
    counts = {name: sum(getattr(check, name) for check in checks) for name in ("kills", "trials")}
    kills = count_text(counts["kills"], "time")
    return counts, (
        f"runs         {len(checks)}, killed {kills} by SIGKILL in {seconds:.0f} s",
        f"trials       {counts['trials']}, each compared with that of a run nobody killed",
    )
