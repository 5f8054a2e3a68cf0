"""How good seeds are: where they rank among all points of recorded spaces.

    python -m benchmarks.search.seed_rows SPACE.t4.json.gz... --hub gemm_RTX_3090.json.gz sm_86 82 --json

Beside the seeds' ranks stand the rank correlation of the model with the times over the whole space, and what
as many points drawn at random give. ``--hub FILE CHIP MULTIPROCESSORS`` takes another tuner's GPU space,
CLBlast's GEMM of github.com/AutoTuningAssociation/benchmark_hub: its knobs are put to the same GPU model.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.results_file import add_report_options, emit, report
from tuner.core.chips import WARP_THREADS, chip_of
from tuner.core.problem import Matmul
from tuner.cost_model import gpu as gpu_cost
from tuner.cost_model.gpu import GpuTiles
from tuner.cost_model.row_cost import Counts, KnobColumns, model_of
from tuner.cost_model.seed_rows import SEEDS, seed_rows
from tuner.recorded.reading import read_recorded
from tuner.recorded.space import RecordedSpace

HUB_PROBLEM = Matmul(4096, 4096, 4096)
ADDRESS_REGISTERS = 40
DRAWS = 2000


def main() -> None:
    """Runs the benchmark."""
    words = _arguments()
    rows = [_recorded(file) for file in words.files]
    rows += [_hub(Path(file), chip, int(count)) for file, chip, count in words.hub]
    for row in rows:
        print(
            f"{row['file']}: best of {row['seeds']} seeds {row['best_of_seeds']:.1%} of the optimum "
            f"(at random {row['best_at_random']:.1%}), their median rank {row['median_rank']:.0%} "
            f"from the top, rank correlation {row['rank_correlation']:.2f}",
            file=sys.stderr,
        )
    settings = {"seeds_per_strategy": SEEDS, "draws": DRAWS}
    emit(report("seeds", settings, rows, {}), words.json, words.output)


def _recorded(file: Path) -> dict[str, Any]:
    space = read_recorded(file)
    if space.problem is None:
        sys.exit(f"{file}: found no problem of this tuner, allowed what tuner record-space wrote, or --hub")
    seeds = seed_rows(space.feasible, space.problem, space.machine, space.threads)
    models = [model_of(each, space.problem, space.machine, space.threads) for each in space.feasible.spaces]
    costs = [
        np.full(len(index), np.nan) if model is None else model.costs(index, {})
        for model, index in zip(models, space.feasible.index, strict=True)
    ]
    return _row(file, space, np.array(seeds, int), np.concatenate(costs))


def _hub(file: Path, chip: str, multiprocessors: int) -> dict[str, Any]:
    """Ranks all points by the model; the seeds are the first of different MWG x NWG, as ours are."""
    space = read_recorded(file)
    columns = KnobColumns(space.feasible.spaces[0], space.feasible.index[0])
    costs = gpu_cost.cycles(_clblast(columns), HUB_PROBLEM, chip_of(chip), multiprocessors)
    shapes: dict[tuple[float, float], int] = {}
    block_m, block_n = columns.numbers("MWG"), columns.numbers("NWG")
    for row in np.argsort(costs, kind="stable"):
        shapes.setdefault((block_m[row], block_n[row]), int(row))
    return _row(file, space, np.array(list(shapes.values())[:SEEDS]), costs)


def _clblast(columns: KnobColumns) -> GpuTiles:
    """Returns what CLBlast's knobs mean: https://github.com/CNugteren/CLBlast, xgemm_part1.opencl."""
    block_m, block_n, block_k = (columns.numbers(name) for name in ("MWG", "NWG", "KWG"))
    threads_m, threads_n = columns.numbers("MDIMC"), columns.numbers("NDIMC")
    threads = threads_m * threads_n
    rows, across = block_m / threads_m, block_n / threads_n
    warp_m = np.minimum(threads_m, WARP_THREADS)
    of_warp = warp_m * rows + WARP_THREADS / warp_m * across
    shared = columns.numbers("SA") * block_m + columns.numbers("SB") * block_n
    loads = rows / columns.numbers("VWM") + across / columns.numbers("VWN")
    return GpuTiles(
        block_m=block_m,
        block_n=block_n,
        block_k=np.where(shared > 0, block_k, columns.numbers("KWI")),  # what is read before it is used
        threads=threads,
        registers=rows * across + rows + across + ADDRESS_REGISTERS,
        shared_bytes=4 * block_k * shared,
        instructions=threads * (rows * across + loads),
        read_bytes=4 * threads / WARP_THREADS * of_warp,
        depth=np.zeros(len(threads)),
        splits=np.ones(len(threads)),
    )


def _row(file: Path, space: RecordedSpace, seeds: npt.NDArray[np.int64], costs: Counts) -> dict[str, Any]:
    times_s = np.where(np.isnan(space.times_s), np.inf, space.times_s)
    ranks = np.argsort(np.argsort(times_s, kind="stable"), kind="stable") / len(times_s)
    rng = np.random.default_rng(0)
    drawn = [times_s[rng.choice(len(times_s), len(seeds), replace=False)].min() for _ in range(DRAWS)]
    is_known = np.isfinite(times_s) & np.isfinite(costs)
    return {
        "file": file.name,
        "rows": space.rows,
        "seeds": len(seeds),
        "best_of_seeds": float(times_s.min() / times_s[seeds].min()),
        "best_at_random": float(np.mean(times_s.min() / np.array(drawn))),
        "median_rank": float(np.median(ranks[seeds])),
        "ranks": ranks[seeds].tolist(),
        "speeds": (times_s.min() / times_s[seeds]).tolist(),
        "rank_correlation": _rank_correlation(costs[is_known], times_s[is_known]),
        "points": [space.feasible.candidate(int(row)).text for row in seeds],
    }


def _rank_correlation(costs: Counts, times_s: Counts) -> float:
    """Returns Spearman's coefficient; equal costs share their mean rank."""
    _, which, counts = np.unique(costs, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    return float(np.corrcoef(mean_ranks[which], np.argsort(np.argsort(times_s)))[0, 1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument(
        "--hub", nargs=3, action="append", default=[], metavar=("FILE", "CHIP", "MULTIPROCESSORS")
    )
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
