"""The format "lighthouse": a library, and descriptors by which the project lighthouse finds and applies it.

Conventions, of lighthouse/pipeline in https://github.com/llvm/lighthouse: a descriptor is a YAML file
``<arch>/<operation>/<dtype>.yaml`` below the ``base_path`` of ``find_pipeline_file``. Its key ``Pipeline``
lists stages. The path of a stage ``transform`` begins at the descriptor's folder, and the first op of that
module is applied to the module of the payload.
"""

import json

import yaml

from tuner.core.candidate import Value
from tuner.library.entries import LibraryEntry, LibraryFile
from tuner.library.library import FILE, write_library

ARCH = "x86_64"
TO_LIBRARY = f"../../{FILE}"  # from a descriptor
PARAMETERS = "schedule_parameters.json"


def lighthouse_files(entries: tuple[LibraryEntry, ...]) -> tuple[LibraryFile, ...]:
    """Returns a library, descriptors per operation and type, and tiles; raises UsageError, TunerError."""
    kinds = sorted({(entry.problem.operation, entry.problem.dtype) for entry in entries})
    descriptor = yaml.safe_dump({"Pipeline": [{"transform": TO_LIBRARY}]}).encode()
    return (
        *write_library(entries),
        *(LibraryFile(f"{ARCH}/{operation}/{dtype}.yaml", descriptor) for operation, dtype in kinds),
        LibraryFile(PARAMETERS, (json.dumps(list(map(_parameters, entries)), indent=2) + "\n").encode()),
    )


def _parameters(entry: LibraryEntry) -> dict[str, Value | list[int]]:
    """Returns an entry's tiles by lighthouse's names. No reader on x86 takes the file yet."""
    m, n, k = entry.problem.sizes
    blocks = [entry.size(f"block_{name}") or size for name, size in zip("mnk", (m, n, k), strict=True)]
    tiles = {"reg_tile_m": "tile_m", "reg_tile_n": "tile_n", "reg_tile_k": "unroll_k"}
    of_registers = {name: size for name, knob in tiles.items() if (size := entry.size(knob))}
    return {
        "layer_kind": entry.problem.operation,
        **({"batch": entry.problem.batch} if entry.problem.lead else {}),
        "m": m,
        "n": n,
        "k": k,
        "dtype": entry.problem.dtype,
        "layout": entry.problem.layout,
        "block_factors": blocks,
        **of_registers,
    }
