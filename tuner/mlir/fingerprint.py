"""Hashes of the sources that compile a script, and versions of MLIR's wheels: the compiler's identity."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

# ------------------------------------------------------------------------------
# Hashes the source files that compile a script, so that a stored result is not reused after they change.
#
# The script itself, with all files that its template includes, is hashed separately: the key of a stored
# result contains both hashes.


Sources = tuple[str, ...]  # folders and files, relative to the package

PACKAGE = Path(__file__).parents[1]
CACHE_FOLDER = "__pycache__"
SHARED_SOURCES: Sources = (
    "core/fusions.py",
    "core/numpy_types.py",
    "core/problem.py",
    "mlir/bindings.py",
    "mlir/cpu_ops",
    "mlir/dialect.py",
    "mlir/empty_matches.py",
    "mlir/fusions.py",
    "mlir/gpu_ops",
    "mlir/ir",
    "mlir/math",
    "mlir/passes.py",
    "mlir/transform.py",
    "mlir/wgmma",
    "payload",  # also has the reference that a result is compared with
)
CPU_SOURCES: Sources = (
    *SHARED_SOURCES,
    "core/processors.py",
    "mlir/cpu",
    "runtime/cpu/host.py",  # whether code is adapted to what the processor here can run
    "runtime/cpu/jit.py",
    "targets/cpu/compiler.py",
)
GPU_SOURCES: Sources = (
    *SHARED_SOURCES,
    "core/gpu.py",  # PTX versions, limits, layouts of tensor maps
    "core/gpu_code.py",
    "mlir/effects",
    "mlir/gpu",
    "search/cost_model/occupancy.py",  # decides which programs are rejected
    "targets/gpu/compiler.py",
)
# The simulator gives nothing but a verdict, which is valid only for the same version of the simulator.
SIMULATOR_SOURCES: Sources = (
    *GPU_SOURCES,
    "runtime/cpu/memory.py",  # guards around arrays
    "simulator",
    "targets/arrays.py",
    "targets/gpu/arrays.py",
    "targets/gpu/block_sample.py",
    "targets/gpu/evaluator.py",
    "targets/gpu/simulator.py",
)


@cache
def sources_sha256(sources: Sources, package: Path = PACKAGE) -> str:
    """Returns one SHA-256, in hex, over the paths and contents of the source files that ``sources`` lists.

    ``sources``: files and folders relative to the folder ``package``; a folder stands for all files in it,
    except those in ``__pycache__``. Computed once per process and arguments. Raises FileNotFoundError for a
    source that does not exist.
    """
    digest = hashlib.sha256()
    for path in files_of(sources, package):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def files_of(sources: Sources, package: Path = PACKAGE) -> tuple[Path, ...]:
    """Returns the files that ``sources`` lists, each once, sorted by path.

    ``sources``: files and folders relative to the folder ``package``; a folder stands for all files in it,
    except those in ``__pycache__``. A listed file is returned even if it does not exist.
    """
    found = {file for source in sources for file in _files(package / source)}
    return tuple(sorted(found))


def _files(source: Path) -> Iterator[Path]:
    if not source.is_dir():
        yield source
        return
    for path in source.rglob("*"):
        if path.is_file() and CACHE_FOLDER not in path.parts:
            yield path


# ------------------------------------------------------------------------------
# Names and versions of the compiler's wheels, read without importing them, which would take 0.4 s.


LLVM_OF_WHEEL = {"numba-cuda-mlir": "LLVM 23 snapshot", "torch-mlir": "LLVM snapshot of its date"}


def packages() -> tuple[tuple[str, str], ...]:
    """Returns (distribution name, version) of each of the two Python wheels that provide MLIR and LLVM.

    Raises PackageNotFoundError for a wheel that is not installed.
    """
    return tuple((name, version(name)) for name in LLVM_OF_WHEEL)


def llvm_version() -> str:
    """Returns one line of text with the names and versions of the wheels that provide MLIR and LLVM.

    Identifies the compiler in stored results: no wheel reports its LLVM revision.
    """
    return "; ".join(f"{name} {number} ({LLVM_OF_WHEEL[name]})" for name, number in packages())
