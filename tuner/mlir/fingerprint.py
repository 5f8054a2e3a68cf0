"""Hashes the source files that compile a script, so that a stored result is not reused after they change.

The script itself, with all files that its template includes, is hashed separately: the key of a stored
result contains both hashes.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

Sources = tuple[str, ...]  # folders and files, relative to the package

PACKAGE = Path(__file__).parents[1]
CACHE_FOLDER = "__pycache__"
SHARED_SOURCES: Sources = (
    "core/element_types.py",
    "core/group_facts.py",
    "core/grouped_program.py",
    "core/numpy_types.py",
    "core/problem.py",
    "mlir/bindings.py",
    "mlir/group_form.py",
    "mlir/interpreter.py",
    "mlir/math",
    "mlir/ops",
    "mlir/pass_timing.py",  # runs the passes
    "mlir/pipeline.py",
    "mlir/rewrite",
    "payload",  # also has the reference that a result is compared with
)
CPU_SOURCES: Sources = (*SHARED_SOURCES, "mlir/cpu", "mlir/jit.py", "targets/cpu/compiler.py")
DESCRIBED_CPU_SOURCES: Sources = (
    *CPU_SOURCES,
    "core/described_processors.py",
    "core/instruction_sets.py",
    "runtime/cpu/describe_host.py",  # whether code is adapted to what the processor here can run
    "runtime/cpu/processor_flags.py",
    "targets/cpu/described_compiler.py",
    "targets/cpu/object_code.py",
)
GPU_SOURCES: Sources = (
    *SHARED_SOURCES,
    "core/chips.py",  # PTX versions, limits
    "core/device.py",  # layouts of tensor maps
    "core/kernel_program.py",
    "cost_model/launch_limits.py",  # decides which programs are rejected
    "cost_model/occupancy.py",
    "mlir/effects",
    "mlir/gpu",
    "targets/gpu/compiler.py",
    "targets/gpu/ptxas.py",
    "targets/gpu/ptxas_report.py",
)
# The simulator gives nothing but a verdict, which is valid only for the same version of the simulator.
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
