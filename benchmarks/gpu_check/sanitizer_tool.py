"""NVIDIA's compute-sanitizer: where it is installed, a module run under it, and the verdict of its output."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.gpu_check.checks import CheckOutcome, evaluated, failed

SANITIZER = "compute-sanitizer"
# Where CUDA installs it, in addition to PATH
SANITIZER_PLACES = (Path("/usr/local/cuda/bin"), Path("/usr/local/cuda/compute-sanitizer"))
TOOLS = ("memcheck", "racecheck")
ERROR_CODE = 9
LIMIT_S = 90.0  # of one run: every access is checked, and racecheck is the slowest
SUMMARY = re.compile(r"SUMMARY: (\d+) (?:errors?|hazards?)")
COMPLAINT = re.compile(r"^=+ (?:Error|Warning|Invalid|Program hit|Race|Potential)[^\n]*", re.MULTILINE)
ROOT = Path(__file__).parents[2]


def installed_sanitizer() -> Path | None:
    """Returns compute-sanitizer from PATH or from CUDA's installation; None where it is missing."""
    found = shutil.which(SANITIZER)
    places = (shutil.which(SANITIZER, path=place) for place in SANITIZER_PLACES)
    return next((Path(place) for place in (found, *places) if place), None)


def watched(path: Path, tool: str, module: list[str]) -> CheckOutcome:
    """Runs a module of Python, with its arguments, under one tool."""
    command = [str(path), "--tool", tool, "--error-exitcode", str(ERROR_CODE), sys.executable, "-m"]
    process = subprocess.Popen(
        [*command, *module],
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
