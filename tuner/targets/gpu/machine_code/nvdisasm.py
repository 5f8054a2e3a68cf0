"""Runs nvdisasm on a cubin."""

import subprocess
import tempfile
from pathlib import Path

TIMEOUT_S = 60.0


def listing_of(cubin: bytes, nvdisasm: Path) -> str:
    """Returns nvdisasm's listing of a cubin: its instructions as text, with their encodings.

    ``nvdisasm``: path of the executable. Raises CalledProcessError where nvdisasm cannot read the cubin,
    TimeoutExpired where it takes longer than 60 s (TIMEOUT_S).
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(nvdisasm), "-c", "-hex", file.name]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout
