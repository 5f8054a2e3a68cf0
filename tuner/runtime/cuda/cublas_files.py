"""Finds the file of cuBLAS without the package cuda-pathfinder."""

import importlib.util
import itertools
from collections.abc import Iterable
from pathlib import Path

WHEELS = ("cu*/lib", "cublas/lib")  # of the wheels nvidia-cublas and nvidia-cublas-cuXX, below nvidia/
SYSTEM = (Path("/usr/local/cuda/lib64"), Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"))
PATTERN = "libcublas.so.*"


def cublas_file(system: Iterable[Path] = SYSTEM) -> Path | None:
    """Returns the newest library of a wheel, which torch depends on, else of the system; None without one."""
    found = importlib.util.find_spec("nvidia")
    wheels = [] if found is None else [Path(root) for root in found.submodule_search_locations or ()]
    for root, folder in itertools.product(wheels, WHEELS):
        files = [file for place in root.glob(folder) for file in place.glob(PATTERN)]
        if files:
            return max(files, key=_version)
    return max((file for place in system for file in place.glob(PATTERN)), key=_version, default=None)


def _version(file: Path) -> tuple[tuple[int, ...], int]:
    """Returns the version behind ``.so``; of links to one file the shortest name is the greatest."""
    words = file.name.removeprefix("libcublas.so.").split(".")
    numbers = tuple(int(word) for word in words if word.isdigit())
    return numbers[:1], -len(words)
