"""``verify-resume --fleet``: every part of a fleet of real local processes fails during a run.

    python -m benchmarks.fleet.verify_resume --file RECORDING --runs 1 --trials 40 --seed 0 --sampler tpe

exits with 0 where each run ends as an undisturbed run does.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.fleet.fault_check import LEASE_S, FleetCheck, check_fleet
from benchmarks.verify_resume import settings_on, uninterrupted_trials
from tuner.cli.main import DONE, FAILED, INTERRUPTED, MISUSED
from tuner.cli.options import print_json
from tuner.core.errors import TunerError, UsageError, error_lines
from tuner.fleet.install import install
from tuner.fleet.local_postgres import server
from tuner.fleet.server import require_packages
from tuner.fleet.tables import FleetSettings
from tuner.results.differences import run_difference_document, run_difference_lines
from tuner.results.output.formatting import count_text, wrapped
from tuner.targets.registry import real_backends


def main(texts: Sequence[str] | None = None) -> int:
    """Checks runs and prints the results; returns the exit code."""
    asked = arguments(texts)
    started_s = time.monotonic()
    checks = []
    print(f"0/{asked.runs} begins with runs that nothing happens to", file=sys.stderr)
    try:
        for number, check in enumerate(_checks(asked), start=1):
            checks.append(check)
            print("\n".join(wrapped([f"{number}/{asked.runs} {_line(check)}"])), file=sys.stderr)
    except TunerError as error:
        print(error_lines(error.message, error.hint), file=sys.stderr)
        return MISUSED if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    _print(asked.file, checks, time.monotonic() - started_s, asked.json)
    return DONE if all(check.is_exact for check in checks) else FAILED


def arguments(texts: Sequence[str] | None) -> argparse.Namespace:
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=Path, required=True)
    for name in ("--runs", "--trials", "--seed"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--sampler", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(texts)


def _checks(asked: argparse.Namespace) -> Iterator[FleetCheck]:
    require_packages()
    settings = settings_on(asked.file, tuple(asked.sampler), asked.trials, asked.seed)
    rng = np.random.default_rng(asked.seed)
    with tempfile.TemporaryDirectory() as name, server() as url:
        install(url, FleetSettings(LEASE_S))
        backends = real_backends()
        uninterrupted = [uninterrupted_trials(each, backends, Path(name)) for each in settings[: asked.runs]]
        for number in range(asked.runs):
            place = number % len(settings)
            yield check_fleet(url, settings[place], asked.file, uninterrupted[place], rng)


def _print(file: Path, checks: list[FleetCheck], seconds: float, as_json: bool) -> None:
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


def _line(check: FleetCheck) -> str:
    counts = (count_text(len(check.differences), "difference"), f"{check.repeated} done again")
    return f"{check.sampler}: {', '.join((*check.faults, count_text(check.trials, 'trial'), *counts))}"


if __name__ == "__main__":
    sys.exit(main())
