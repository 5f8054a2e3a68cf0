"""Starts the processes of tests/db/writer.py."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT_S = 120


def start(*options: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Starts a task, behind the words of another program where given."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.Popen(
        [*before, sys.executable, "-W", "error", "-m", "tests.db.writer", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def facts(process: subprocess.Popen[str], status: int = 0) -> dict[str, Any]:
    """Waits for a task and returns what it told."""
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == status, err
    given: dict[str, Any] = json.loads(out)
    return given
