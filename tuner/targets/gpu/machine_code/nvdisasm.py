"""Runs nvdisasm on a cubin."""

import subprocess
import tempfile
from pathlib import Path

TIMEOUT_S = 60.0


def listing_of(cubin: bytes, nvdisasm: Path) -> str:
    """Returns the instructions of a cubin as text, with their encodings.

    Raises CalledProcessError where nvdisasm cannot read the cubin.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(nvdisasm), "-c", "-hex", file.name]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout
