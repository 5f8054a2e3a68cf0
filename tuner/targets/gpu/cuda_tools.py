"""Finds NVIDIA's command-line tools: in their wheels, whose versions are pinned, else on PATH."""

import importlib.metadata
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

# Tool -> the distributions that may hold it, the newest CUDA first.
DISTRIBUTIONS = {
    "ptxas": ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12"),
    "nvdisasm": ("nvidia-cuda-nvdisasm",),
    "compute-sanitizer": ("nvidia-cuda-sanitizer-api",),
}


@dataclass(frozen=True)
class Tool:
    """An executable of NVIDIA's CUDA toolkit, and where it was found: a wheel with its version, or PATH."""

    path: Path
    origin: str  # "nvidia-cuda-nvcc 13.5.37", or "PATH"


def locate(name: str) -> Tool | None:
    """Returns an executable of CUDA, from its wheel, else from PATH; None if it is not installed.

    ``name``: "ptxas", "nvdisasm" or "compute-sanitizer".
    """
    for distribution in DISTRIBUTIONS[name]:
        found = _in_wheel(name, distribution)
        if found is not None:
            return found
    path = shutil.which(name)
    return Tool(Path(path), "PATH") if path else None


def _in_wheel(name: str, distribution: str) -> Tool | None:
    try:
        wheel = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    # nvidia/cu13/bin since CUDA 13, nvidia/cuda_nvcc/bin before
    for file in wheel.files or ():
        path = Path(str(wheel.locate_file(file)))
        if file.name == name and file.parent.name == "bin" and os.access(path, os.X_OK):
            return Tool(path, f"{distribution} {wheel.version}")
    return None
