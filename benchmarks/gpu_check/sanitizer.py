"""The GPU check, third part: NVIDIA's compute-sanitizer on one point of each strategy.

The sanitizer watches this module run with --strategy: one point is compiled, run and compared with float64.
"""

import argparse
import functools
import sys
from pathlib import Path

from benchmarks.gpu_check.checks import Check, CheckOutcome, skipped
from benchmarks.gpu_check.device_runs import fault_of
from benchmarks.gpu_check.device_under_test import DEVICES, STUB, Bed
from benchmarks.gpu_check.environment import find_sanitizer
from benchmarks.gpu_check.points import Case, first_built, gpu_strategies
from benchmarks.gpu_check.sanitizer_tool import LIMIT_S, SANITIZER, TOOLS, watched
from benchmarks.gpu_check.unchanged import EarlierRows, ptx_sha256
from tuner.core.errors import TunerError
from tuner.core.matmul import Matmul

SIZES = (264, 200, 136)  # more than one block each way, the last ones not full
QUICK_SIZES = (24, 40, 8)


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns one check for each strategy and tool."""
    path = find_sanitizer()
    if path is None or not bed.is_hardware:
        reason = f"no {SANITIZER} here" if path is None else f"nothing to watch on the {bed.device}"
        return (Check("all strategies", lambda: skipped(reason)),)
    earlier = EarlierRows.read(bed.earlier)
    names = [(entry.name, tool) for tool in TOOLS for entry in gpu_strategies()]
    return tuple(
        Check(
            f"{name}, {tool}",
            functools.partial(watch_if_changed, path, tool, bed, name, earlier),
            LIMIT_S + 10.0,
        )
        for name, tool in names
    )


def watch_if_changed(path: Path, tool: str, bed: Bed, strategy: str, earlier: EarlierRows) -> CheckOutcome:
    """Compiles a strategy's point; watches it unless the same PTX has passed before. Raises TunerError."""
    _, program = first_built(sanitized_case(strategy, is_quick=bed.is_quick), bed.target)
    return earlier.or_ask(
        "sanitizer", f"{strategy}, {tool}", ptx_sha256(program), lambda: watch(path, tool, bed, strategy)
    )


def watch(path: Path, tool: str, bed: Bed, strategy: str) -> CheckOutcome:
    """Runs one strategy under one tool."""
    command = ["benchmarks.gpu_check.sanitizer", "--device", bed.device, "--chip", bed.chip]
    command += ["--quick"] if bed.is_quick else []
    return watched(path, tool, [*command, "--strategy", strategy])


def sanitized_case(strategy: str, *, is_quick: bool = False) -> Case:
    """Returns the case of a strategy that is watched: its first dtype and layout."""
    entry = next(entry for entry in gpu_strategies() if entry.name == strategy)
    sizes = QUICK_SIZES if is_quick else SIZES
    return Case(strategy, Matmul(*sizes, entry.dtypes[0], entry.layouts[0]))


def run_once(bed: Bed, strategy: str) -> str:
    """Runs a strategy's initial configuration; returns "" if C is right, or the error. Raises TunerError."""
    case = sanitized_case(strategy, is_quick=bed.is_quick)
    _, program = first_built(case, bed.target)
    return fault_of(bed.open(), case.problem, program)


def main() -> None:
    """Runs one point, under the sanitizer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=DEVICES, default=STUB)
    parser.add_argument("--chip", required=True)
    parser.add_argument("--strategy", required=True)
    parser.add_argument("--quick", action="store_true", help="a small problem")
    phrase = parser.parse_args()
    try:
        sys.exit(run_once(Bed(phrase.device, phrase.chip, phrase.quick), phrase.strategy) or 0)
    except TunerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
