"""Runs ``python -m tuner measure`` as on a machine that has Python, numpy and a CUDA driver, nothing else."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.stub_driver import stub_library

ROOT = Path(__file__).parents[3]
ABSENT = (
    *("click", "sqlalchemy", "alembic", "optuna", "jinja2", "yaml", "rich", "platformdirs"),
    *("threadpoolctl", "ml_dtypes", "cuda", "numba_cuda_mlir", "torch_mlir", "torch", "cupy", "pynvml"),
)
SITE = f"""
import sys
for name in {ABSENT!r}:
    sys.modules[name] = None
if {{driver}}:
    from tests.elsewhere.bundle.numpy_gpu import install
    install()
"""


def measure(folder: Path, *options: str, has_driver: bool = True) -> "subprocess.CompletedProcess[str]":
    """Runs the command in a folder. Skips without a C compiler."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(SITE.format(driver=has_driver))
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{site}:{ROOT}",
        "LD_LIBRARY_PATH": str(stub_library().parent) if has_driver else "",
    }
    command = [sys.executable, "-m", "tuner", "measure", *options]
    where: dict[str, Any] = {"cwd": folder, "env": environment, "timeout": 120}
    return subprocess.run(command, **where, capture_output=True, text=True, check=False)
