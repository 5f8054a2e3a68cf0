"""A small file system for one process, which ends with the process."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tuner.core.errors import TunerError

MOUNT: Final = 'mount -t tmpfs -o size=%dk none "$1" && shift && exec "$@"'
CHUNK_BYTES: Final = 1 << 12  # a page: so the last one is filled as well


def small_disk(folder: Path, kib: int) -> tuple[str, ...]:
    """Returns a command prefix under which a folder has ``kib`` KiB of space.

    Raises TunerError where this machine does not allow such a file system.
    """
    if shutil.which("unshare") is None:
        raise TunerError("small disk: found no unshare, which gives a process a file system of its own")
    as_root = () if os.geteuid() == 0 else ("-r",)
    phrase = ("unshare", "-m", *as_root, "sh", "-c", MOUNT % kib, "sh", str(folder))
    refused = subprocess.run([*phrase, "true"], capture_output=True, text=True, check=False)
    if refused.returncode != 0:
        raise TunerError(f"small disk: found no leave to mount one: {refused.stderr.strip()}")
    return phrase


def fill_disk(process: int, folder: Path) -> None:
    """Fills the file system of a folder, as a process sees the folder."""
    with Path(f"/proc/{process}/root{folder}/all").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(CHUNK_BYTES))
        except OSError:  # that was the last page
            return
