"""What compute-sanitizer prints, judged; the run that it watches, under a stand-in for the tool."""

import sys
from pathlib import Path

import pytest

from benchmarks.gpu_check.device_under_test import SIMULATOR, STUB, Bed
from benchmarks.gpu_check.sanitizer import checks, verdict, watch

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
WRONG = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at matmul_kernel+0x3f0
========= ERROR SUMMARY: 2 errors
"""
HAZARDS = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at matmul_kernel+0x510 and Read access
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
# Printed on a machine without a driver
NOTHING = """========= COMPUTE-SANITIZER
========= Error: process didn't terminate successfully
========= Error: Target application terminated before first instrumented API call
"""


@pytest.mark.parametrize(
    ("code", "text", "status", "options"),
    [
        (0, CLEAN, "passed", "tool: 0 errors, exit code 0"),
        (1, CLEAN, "failed", "tool: 0 errors, exit code 1"),
        (9, WRONG, "failed", "tool: 2 errors, exit code 9: Invalid __global__ write of size 4 bytes"),
        (0, HAZARDS, "failed", "tool: 1 hazard, exit code 0: Error: Race reported between Write access at"),
        (255, NOTHING, "failed", "tool: no summary, exit code 255: Error: Target application terminated"),
        (1, "", "failed", "tool: no summary, exit code 1: no output"),
    ],
)
def test_only_a_summary_of_nothing_passes(code: int, text: str, status: str, options: str) -> None:
    outcome = verdict("tool", code, text)
    assert outcome.status == status
    assert outcome.words.startswith(options)


def test_without_a_gpu_there_is_nothing_to_watch() -> None:
    (check,) = checks(Bed(SIMULATOR, "sm_90"))
    assert check.ask().status == "skipped"


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """Gives what runs its command as compute-sanitizer does, and finds nothing."""
    path = tmp_path / "compute-sanitizer"
    path.write_text(
        f"#!{sys.executable}\nimport subprocess, sys\n"
        "assert sys.argv[1:5] == ['--tool', 'memcheck', '--error-exitcode', '9']\n"
        "code = subprocess.run(sys.argv[5:]).returncode\n"
        "print('========= ERROR SUMMARY: 0 errors')\nsys.exit(code)\n"
    )
    path.chmod(0o755)
    return path


@pytest.mark.slow
@pytest.mark.mlir
@pytest.mark.usefixtures("built_stub")
def test_the_run_that_is_watched_computes_the_right_c(tool: Path) -> None:
    outcome = watch(tool, "memcheck", Bed(STUB, "sm_90", is_quick=True), "matmul_gpu_naive")
    assert (outcome.status, outcome.words) == ("passed", "memcheck: 0 errors, exit code 0")


@pytest.mark.slow
@pytest.mark.mlir
def test_a_run_that_cannot_begin_has_failed(tool: Path) -> None:
    outcome = watch(tool, "memcheck", Bed(STUB, "sm_70"), "matmul_gpu_naive")
    assert (outcome.status, outcome.words) == ("failed", "memcheck: 0 errors, exit code 1")
