"""The GPU check, third part: NVIDIA's compute-sanitizer on one point of each strategy.

The sanitizer watches this module run with --strategy: one point is compiled, run and compared with float64.
"""

import argparse
import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.gpu_check.checks import Check, CheckOutcome, evaluated, failed, skipped
from benchmarks.gpu_check.device_under_test import DEVICES, STUB, Bed
from benchmarks.gpu_check.environment import SANITIZER, find_sanitizer
from tuner.core.errors import TunerError

TOOLS = ("memcheck", "racecheck")
SIZES = (264, 200, 136)  # more than one block each way, the last ones not full
QUICK_SIZES = (24, 40, 8)
ERROR_CODE = 9
LIMIT_S = 90.0  # of one run: every access is checked, and racecheck is the slowest
SUMMARY = re.compile(r"SUMMARY: (\d+) (?:errors?|hazards?)")
COMPLAINT = re.compile(r"^=+ (?:Error|Warning|Invalid|Program hit|Race|Potential)[^\n]*", re.MULTILINE)
ROOT = Path(__file__).parents[2]


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns one check for each strategy and tool."""
    path = find_sanitizer()
    if path is None or not bed.is_hardware:
        reason = f"no {SANITIZER} here" if path is None else f"nothing to watch on the {bed.device}"
        return (Check("all strategies", lambda: skipped(reason)),)
    from benchmarks.gpu_check.points import gpu_strategies

    names = [(entry.name, tool) for tool in TOOLS for entry in gpu_strategies()]
    return tuple(
        Check(f"{name}, {tool}", functools.partial(watch, path, tool, bed, name), LIMIT_S + 10.0)
        for name, tool in names
    )


def watch(path: Path, tool: str, bed: Bed, strategy: str) -> CheckOutcome:
    """Runs one strategy under one tool."""
    command = [str(path), "--tool", tool, "--error-exitcode", str(ERROR_CODE), sys.executable]
    command += ["-m", "benchmarks.gpu_check.sanitizer", "--device", bed.device, "--chip", bed.chip]
    command += ["--quick"] if bed.is_quick else []
    process = subprocess.Popen(
        [*command, "--strategy", strategy],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the tool and what it watches
        process.wait()
        return failed(f"{tool}: no result within {LIMIT_S:.0f} s")
    return verdict(tool, process.returncode, text)


def verdict(tool: str, code: int, text: str) -> CheckOutcome:
    """Returns the outcome from the tool's output: passed for a summary without errors and exit code 0."""
    summary = SUMMARY.search(text)
    found = COMPLAINT.search(text)
    if summary is None:
        lines = [line for line in text.splitlines() if line.strip()] or ["no output"]
        return failed(f"{tool}: no summary, exit code {code}: {lines[-1].strip(' =')}")
    complaint = f": {found[0].lstrip('= ')}" if found else ""
    phrase = f"{summary[0].removeprefix('SUMMARY: ')}, exit code {code}{complaint}"
    return evaluated(code == 0 and summary[1] == "0", f"{tool}: {phrase}", summary=summary[0])


def run_once(bed: Bed, strategy: str) -> str:
    """Runs a strategy's initial configuration; returns "" if C is right, or the error. Raises TunerError."""
    from benchmarks.gpu_check.points import Case, first_built, gpu_strategies
    from benchmarks.gpu_check.strategies import run_on
    from tuner.core.problem import Matmul
    from tuner.payload.reference import compare, draw, draw_base

    entry = next(entry for entry in gpu_strategies() if entry.name == strategy)
    problem = Matmul(*(QUICK_SIZES if bed.is_quick else SIZES), entry.dtypes[0], entry.layouts[0])
    _, program = first_built(Case(strategy, problem), bed.target)
    rng = np.random.default_rng(0)
    inputs = draw(problem, draw_base(problem, rng), rng)
    found, stray_bytes = run_on(bed.open(), program, inputs)
    evaluation, phrase = compare(inputs, found)
    if stray_bytes:
        return f"wrote {stray_bytes} bytes outside of C"
    return "" if evaluation.max_error <= 1.0 else phrase


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
