"""Installs PyTorch for the tests of modules, where a CPU build of it can be had; without it these tests skip.

On the default registry the wheel of Linux is built for CUDA and brings some GB of packages, which no test
needs. So what pip would install is looked at first: from the registry of this machine, then from PyTorch's
index of CPU builds. The exit status is 0 in any case.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

TORCH = "torch==2.13.0"  # which torch-mlir 20261001 was tested with
CPU_BUILDS = ("--index-url", "https://download.pytorch.org/whl/cpu")
CUDA = ("nvidia-", "cuda-", "triton")  # begin the names of what a build for CUDA needs
PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--timeout", "15", "--retries", "1")
LIMIT_S = 600


def main() -> None:
    """Installs PyTorch, or prints why not."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    if find_spec("torch") is not None:
        print("PyTorch is installed")
        return
    reasons = []
    for source in ((), CPU_BUILDS):
        reason = refusal(source)
        if reason is None:
            print(f"installed {TORCH}")
            return
        reasons.append(reason)
    print(f"PyTorch is not installed, its tests will skip: {'; '.join(reasons)}")


def refusal(source: tuple[str, ...]) -> str | None:
    """Returns why PyTorch was not installed from a source; None: it is installed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        if failure := failed(*source, "--dry-run", "--report", str(file), TORCH):
            return failure
        names = [each["metadata"]["name"].lower() for each in json.loads(file.read_text())["install"]]
    if any(name.startswith(CUDA) for name in names):
        return f"{TORCH} is a build for CUDA here"
    return failed(*source, TORCH)


def failed(*arguments: str) -> str | None:
    """Runs pip; returns the last line of its error, None where it succeeds."""
    try:
        done = subprocess.run([*PIP, *arguments], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"pip takes longer than {LIMIT_S} s"
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return (errors or [f"pip ends with {done.returncode}"])[-1]


if __name__ == "__main__":
    main()
