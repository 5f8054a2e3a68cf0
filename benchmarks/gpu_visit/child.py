"""The child process of a visit: runs the checks of one section and sends each outcome at once, by a pipe."""

import argparse
import functools
import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.gpu_check.checks import Check
from benchmarks.gpu_check.child import add_child_options, ask
from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_visit.checks_of_candidates import candidate_checks, ranking_checks, regression_checks
from benchmarks.gpu_visit.checks_of_code import code_checks, correctness_checks, micro_checks
from benchmarks.gpu_visit.code_folder import CodeFolder
from benchmarks.gpu_visit.sections import WEIGHTS
from benchmarks.gpu_visit.workbench import Workbench

CHECKS: dict[str, Callable[[Workbench], tuple[Check, ...]]] = {
    "code": code_checks,
    "micro_kernels": micro_checks,
    "regression": regression_checks,
    "correctness": correctness_checks,
    "ranking": ranking_checks,
}


def checks_of(section: str, bench: Workbench) -> tuple[Check, ...]:
    """Returns the checks of a section."""
    return CHECKS.get(section, functools.partial(candidate_checks, section))(bench)


def main() -> None:
    """Runs the checks that the parent process asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", choices=WEIGHTS)
    parser.add_argument("--code", type=Path, required=True, help="folder of compiled code")
    add_child_options(parser)
    options = parser.parse_args()
    bed = Bed(options.device, options.chip, options.quick, options.limit, options.earlier)
    bench = Workbench(bed, CodeFolder.read(options.code))
    with os.fdopen(options.pipe, "w") as pipe:
        ask(checks_of(options.section, bench), options.start, options.limit, pipe)


if __name__ == "__main__":
    main()
