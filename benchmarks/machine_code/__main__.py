"""Dissects the main loops of our GPU kernels, and of Triton's for the same tiles where that is installed.

    pip install -e '.[bench,cuda]'
    python -m benchmarks.machine_code --json

A loop's stalls are the cycles in which one warp alone could issue it if nothing made it wait; its ideal is
that of the multiplications alone. Nothing runs on a GPU; bank conflicts are counted by the PTX simulator.
"""

import argparse
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benchmarks.machine_code.conflicts import count_conflicts
from benchmarks.machine_code.loop_counts import count_loop
from benchmarks.machine_code.pipeline_counts import count_pipeline
from benchmarks.machine_code.tiles import CHIPS, HELD, HOPPER_CHIP, TILES, ComparedTile
from benchmarks.results_file import add_report_options, emit, report
from tests.support.gpu_points import Builder, require_ptxas
from tuner.core.compiled_code import KernelCode
from tuner.gpu.target.compiler import locate
from tuner.gpu.target.sass import listing_of, read_kernels
from tuner.runtime.wheel_tools import Tool


def main() -> None:
    """Compiles every tile for every chip, and counts."""
    options = _arguments()
    tool = locate("nvdisasm")
    if tool is None:
        sys.exit("nvdisasm: found none, allowed one on PATH or from nvidia-cuda-nvdisasm")
    ptxas = require_ptxas()
    rows = [row for chip in (*CHIPS, HOPPER_CHIP) for row in _rows(chip, tool)]
    for row in rows:
        print(_line(row), file=sys.stderr)
    counts = [count_conflicts(shared, options.points, seed=options.seed) for shared in ("swizzle", "pad")]
    summary = {
        "nvdisasm": tool.origin,
        "ptxas": ptxas.version,
        "worst_stalls_over_ideal": {
            chip: max(row["stalls_over_ideal"] for row in rows if row["chip"] == chip and _is_held(row))
            for chip in CHIPS
        },
        "bank_conflicts": [asdict(count) for count in counts],
    }
    settings = {"chips": (*CHIPS, HOPPER_CHIP), "points": options.points, "seed": options.seed}
    emit(report("machine_code", settings, rows, summary), options.json, options.output)


def loop_row(tile: ComparedTile, compiler_build: str, program: KernelCode, tool: Tool) -> dict[str, Any]:
    """Returns what an assembled program's main loop is made of, and what a block of it needs."""
    (kernel,) = read_kernels(listing_of(program.binary, tool.path))
    counts = count_loop(kernel, program.chip)
    assert counts is not None, f"{tile.name}: found no loop with products"
    (resources,) = program.resources
    return {
        "tile": tile.name,
        "chip": program.chip,
        "maker": compiler_build,
        **asdict(counts),
        **(asdict(count_pipeline(kernel, resources)) if program.chip == HOPPER_CHIP else {}),
        "stalls_over_ideal": round(counts.stalls_over_ideal, 4),
        "code": len(kernel.code),
        "registers": resources.registers,
        "spilled_bytes": resources.spilled_bytes,
        "shared_bytes": resources.static_shared_bytes + resources.dynamic_shared_bytes,
        "blocks_per_multiprocessor": resources.blocks_per_multiprocessor,
    }


def _rows(chip: str, tool: Tool) -> Iterator[dict[str, Any]]:
    builder, ptxas = Builder(chip), require_ptxas()
    tiles = [tile for tile in TILES if chip in tile.chips]
    for tile in tiles:
        row = loop_row(tile, "tuner", builder.build(tile.ours).program, tool)
        cutlass = dict(tile.cutlass_cycles).get(chip)
        yield row if cutlass is None else row | {"cutlass_stall_cycles": cutlass}
    if importlib.util.find_spec("triton") is not None:
        from benchmarks.machine_code import triton_matmul

        compiler_build = f"triton {importlib.metadata.version('triton')}"
        for tile in (each for each in tiles if not each.is_variant):
            yield loop_row(tile, compiler_build, ptxas.assemble(triton_matmul.compiled(tile, chip)), tool)


def _is_held(row: dict[str, Any]) -> bool:
    return row["maker"] == "tuner" and row["tile"] in HELD


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['chip']} {row['maker']:12s} {row['tile']:26s} {row['stall_cycles']:5d} of"
        f" {row['ideal_cycles']:4d} cycles, {row['instructions']:4d} instructions,"
        f" {row['registers']:3d} registers,"
        f" {row['spilled_bytes']} bytes spilled, {row['blocks_per_multiprocessor']} blocks"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=200, help="random points, of each layout of tiles")
    parser.add_argument("--seed", type=int, default=7)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
