"""``tuner verify-resume``: kills runs at random moments, resumes them and compares the results."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tuner.cli.main import DONE, FAILED
from tuner.cli.options import composition_of, json_option, print_found
from tuner.core.errors import UsageError
from tuner.output.formatting import count_text, wrapped
from tuner.output.run_difference import run_difference_document, run_difference_lines

if TYPE_CHECKING:
    from tuner.core.runs import RunSettings
    from tuner.tuning.composition import Composition
    from tuner.tuning.resume_check import ResumeCheck

SHIPPED = "matmul_48x64x40.t4.json.gz"
CLONE: Final = Path(__file__).parents[3]
ON_FLEET: Final = "benchmarks.fleet.verify_resume"  # fault injection is not part of the installed package


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

    Example: tuner verify-resume --runs 1 --sampler tpe --trials 25
    """
    from tuner.tuning.resume_check import settings_on

    for name, number, low in (("runs", runs, 1), ("trials", trials, 1), ("seed", seed, 0)):
        if number < low:
            raise UsageError(f"{name}: found {number}, allowed {low} or more")
    file = (recording or _shipped()).absolute()
    started_s = time.monotonic()
    settings = settings_on(file, sampler, trials, seed)
    if on_fleet:
        numbers = ("--runs", str(runs), "--trials", str(trials), "--seed", str(seed))
        chosen = (text for name in sampler for text in ("--sampler", name))
        context.exit(_on_fleet("--file", str(file), *numbers, *chosen, *["--json"] * as_json))
    checks = []
    click.echo(f"0/{runs} begins with runs that nothing happens to", err=True)
    for number, check in enumerate(_checks(composition_of(context), file, settings, runs, seed), start=1):
        checks.append(check)
        click.echo("\n".join(wrapped([f"{number}/{runs} {_line(check)}"])), err=True)
    _print(file, checks, time.monotonic() - started_s, as_json)
    context.exit(FAILED if any(check.differences for check in checks) else DONE)


def _shipped() -> Path:
    import importlib.resources

    return Path(str(importlib.resources.files("tuner") / "space" / "recorded" / SHIPPED))


def _on_fleet(*arguments: str) -> int:
    """Runs the fleet's fault-injection test, which needs a clone of the repository; returns its exit code."""
    if not (CLONE / f"{ON_FLEET.replace('.', '/')}.py").is_file():
        raise UsageError("--fleet: missing benchmarks/fleet: run it in a clone of the repository")
    return subprocess.run([sys.executable, "-m", ON_FLEET, *arguments], cwd=CLONE, check=False).returncode


def _checks(
    composition: "Composition", file: Path, settings: "list[RunSettings]", runs: int, seed: int
) -> "Iterator[ResumeCheck]":
    import numpy as np

    from tuner.tuning.resume_check import check_resume, uninterrupted_trials

    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        uninterrupted = [uninterrupted_trials(each, composition, folder) for each in settings[:runs]]
        for number in range(runs):
            place = number % len(settings)
            database = folder / f"killed_{number}.db"
            yield check_resume(settings[place], file, uninterrupted[place], database, rng)


def _print(file: Path, checks: "list[ResumeCheck]", seconds: float, as_json: bool) -> None:
    found = [difference for check in checks for difference in check.differences]
    document = {
        "recording": str(file),
        "runs": len(checks),
        "kills": sum(check.kills for check in checks),
        "trials": sum(check.trials for check in checks),
        "samplers": sorted({check.sampler for check in checks}),
        "seconds": seconds,
    }
    kills = count_text(sum(check.kills for check in checks), "time")
    print_found(
        as_json,
        {**document, **run_difference_document(found)},
        f"recording    {file}",
        f"runs         {len(checks)}, killed {kills} by SIGKILL in {seconds:.0f} s",
        f"trials       {document['trials']}, each compared with that of a run nobody killed",
        *run_difference_lines(found),
    )


def _line(check: "ResumeCheck") -> str:
    kills, differences = count_text(check.kills, "time"), count_text(len(check.differences), "difference")
    return f"{check.sampler}: killed {kills}, {count_text(check.trials, 'trial')}, {differences}"
