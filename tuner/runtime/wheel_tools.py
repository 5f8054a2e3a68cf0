"""Command-line tools that come in wheels: found there, with the wheel's version."""

import importlib.metadata
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tool:
    """An executable, and its origin: a wheel with version, or "PATH"."""

    path: Path
    origin: str  # "nvidia-cuda-nvcc 13.5.37", or "PATH"


def tool_of_wheels(name: str, distributions: Iterable[str]) -> Tool | None:
    """Returns the executable ``name`` in a folder "bin" of the first of the distributions that has it.

    None if no installed distribution has it.
    """
    for distribution in distributions:
        try:
            wheel = importlib.metadata.distribution(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in wheel.files or ():
            path = Path(str(wheel.locate_file(file)))
            if file.name == name and file.parent.name == "bin" and os.access(path, os.X_OK):
                return Tool(path, f"{distribution} {wheel.version}")
    return None
