"""Hashes the files that turn a script into code, so that a stored outcome does not outlive what made it.

The script itself, with all that its template includes, is hashed beside: the key of an outcome has both.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

Sources = tuple[str, ...]  # folders and files below the package

PACKAGE = Path(__file__).parents[1]
CACHE_FOLDER = "__pycache__"
SHARED_SOURCES: Sources = (
    "core/element_types.py",
    "core/numpy_types.py",
    "core/problem.py",
    "mlir/bindings.py",
    "mlir/interpreter.py",
    "mlir/ops",
    "mlir/pass_timing.py",  # which runs the passes
    "mlir/pipeline.py",
    "mlir/rewrite",
    "payload",  # and the reference that a result is compared with
)
CPU_SOURCES: Sources = (*SHARED_SOURCES, "mlir/cpu", "mlir/jit.py", "targets/cpu/compiler.py")
GPU_SOURCES: Sources = (
    *SHARED_SOURCES,
    "core/chips.py",  # PTX versions, limits
    "core/device.py",  # layouts of tensor maps
    "core/kernel_program.py",
    "cost_model/launch_limits.py",  # which programs are refused
    "cost_model/occupancy.py",
    "mlir/effects",
    "mlir/gpu",
    "targets/gpu/compiler.py",
    "targets/gpu/ptxas.py",
    "targets/gpu/ptxas_report.py",
)
# A verdict is all that the simulator gives: it lives no longer than the simulator that gave it.
SIMULATOR_SOURCES: Sources = (
    *GPU_SOURCES,
    "simulator/block_sample.py",
    "simulator/device",
    "simulator/ptx",
    "simulator/written_tiles.py",
    "targets/gpu/failures.py",
    "targets/gpu/loaded_kernels.py",
    "targets/gpu/simulated_run.py",
    "targets/gpu/simulator.py",
)


@cache
def sources_sha256(sources: Sources, package: Path = PACKAGE) -> str:
    """Returns the hash of paths and bytes. Raises FileNotFoundError for a source that is not there."""
    digest = hashlib.sha256()
    for path in files_of(sources, package):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def files_of(sources: Sources, package: Path = PACKAGE) -> tuple[Path, ...]:
    """Returns all files of the sources, sorted by path."""
    found = {file for source in sources for file in _files(package / source)}
    return tuple(sorted(found))


def _files(source: Path) -> Iterator[Path]:
    if not source.is_dir():
        yield source
        return
    for path in source.rglob("*"):
        if path.is_file() and CACHE_FOLDER not in path.parts:
            yield path
