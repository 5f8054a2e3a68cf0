"""The child process of the GPU check: runs the checks of one part and sends each outcome at once, by a pipe.

Lines are JSON: first the names of all checks, then each check that begins, and its outcome. The child ends
after a check that raised: an error of a kernel may have made the context of its process unusable.
"""

import argparse
import importlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from benchmarks.gpu_check.budget import WEIGHTS
from benchmarks.gpu_check.checks import Check, CheckOutcome, failed
from benchmarks.gpu_check.device_under_test import DEVICES, Bed
from tuner.core.errors import TunerError

WORDS_LIMIT = 400  # characters of a complaint


def checks_of(part: str, bed: Bed) -> tuple[Check, ...]:
    """Returns the checks of a part."""
    module = importlib.import_module(f"benchmarks.gpu_check.{part}")
    checks: Callable[[Bed], tuple[Check, ...]] = module.checks
    return checks(bed)


def attempt(check: Check) -> tuple[CheckOutcome, bool]:
    """Returns the outcome of a check, and whether it raised; a defect of the tuner ends the process."""
    try:
        return check.ask(), False
    except TunerError as error:
        return failed(str(error)[:WORDS_LIMIT]), True


def ask(checks: tuple[Check, ...], start: int, limit_s: float, pipe: IO[str]) -> None:
    """Runs checks from number ``start`` on until the seconds are over or a check raises."""
    began_s = time.monotonic()
    _report(pipe, {"checks": [check.name for check in checks]})
    for number in range(start, len(checks)):
        if time.monotonic() - began_s >= limit_s:
            return
        check, start_s = checks[number], time.monotonic()
        _report(pipe, {"begin": number, "limit_s": check.limit_s})
        outcome, has_raised = attempt(check)
        seconds = time.monotonic() - start_s
        given = {"status": outcome.status, "words": outcome.words, "facts": outcome.facts}
        _report(pipe, {"done": number, "seconds": seconds, **given})
        if has_raised:
            return


def _report(pipe: IO[str], line: dict[str, object]) -> None:
    pipe.write(json.dumps(line, default=str) + "\n")
    pipe.flush()


def add_child_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that the parent process passes to every child."""
    parser.add_argument("--device", choices=DEVICES, required=True)
    parser.add_argument("--chip", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--start", type=int, default=0, help="number of the first check to ask")
    parser.add_argument("--limit", type=float, required=True, help="seconds")
    parser.add_argument("--pipe", type=int, default=1, help="descriptor to tell by")
    parser.add_argument("--earlier", type=Path, help="results file: what passed is not asked again")


def main() -> None:
    """Runs the checks that the parent process asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=WEIGHTS)
    add_child_options(parser)
    options = parser.parse_args()
    bed = Bed(options.device, options.chip, options.quick, options.limit, options.earlier)
    with os.fdopen(options.pipe, "w") as pipe:
        ask(checks_of(options.part, bed), options.start, options.limit, pipe)


if __name__ == "__main__":
    main()
