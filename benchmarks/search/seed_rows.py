"""How good seeds are: where they rank among all points of recorded spaces.

    python -m benchmarks.search.seed_rows SPACE.t4.json.gz... --hub gemm_RTX_3090.json.gz sm_86 82 --json

Next to the seeds' ranks are the rank correlation of the model with the times over the whole space, and what
as many points drawn at random give. ``--hub FILE CHIP MULTIPROCESSORS`` takes another tuner's GPU space,
CLBlast's GEMM of github.com/AutoTuningAssociation/benchmark_hub: its knobs are put to the same GPU model.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.ordering import rank_correlation
from benchmarks.search.replay_run import replay
from benchmarks.search.replay_space import ReplaySpace
from tuner.core.gpu import MAX_REGISTERS_PER_THREAD, WARP_THREADS, Chip, chip_of
from tuner.core.matmul import Matmul
from tuner.gpu.cost_model import gpu
from tuner.gpu.cost_model.gpu import LATENCY, GpuTiles, by_kind
from tuner.gpu.cost_model.shared_memory import access_cycles
from tuner.search.cost_model.configurations import (
    SEEDS,
    Counts,
    KnobColumns,
    initial_configurations,
    model_of,
)
from tuner.space.recorded.reading import read_recorded
from tuner.space.recorded.recording import RecordedSpace

HUB_PROBLEM = Matmul(4096, 4096, 4096)
TURING = Chip("sm_75", "", 65 << 10, max_threads=1024, max_blocks=16, max_barriers=16 * 16)  # Titan RTX
ADDRESS_REGISTERS, FEW_REGISTERS = 32, 16  # in addition to sums and operands: usually, and at least
SPILL_CYCLES = 8.0  # of a register that is stored and loaded again, once for each tile
INSTRUCTIONS_OF_A_LOAD = 1.3  # with its addresses
LOAD_WAIT = 24.0  # cycles for shared memory
DRAWS = 2000
SEARCH, EVALUATIONS = "tpe", 200


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = [_recorded(file) for file in options.files]
    rows += [_hub(Path(file), chip, int(count), options.searches) for file, chip, count in options.hub]
    for row in rows:
        print(
            f"{row['file']}: best of {row['seeds']} seeds {row['best_of_seeds']:.1%} of the optimum "
            f"(at random {row['best_at_random']:.1%}), their median rank {row['median_rank']:.0%} "
            f"from the top, rank correlation {row['rank_correlation']:.2f} {row.get('searches', '')}",
            file=sys.stderr,
        )
    settings = {"seeds_per_strategy": SEEDS, "draws": DRAWS}
    emit(report("seeds", settings, rows, {}), options.json, options.output)


def _recorded(file: Path) -> dict[str, Any]:
    space = read_recorded(file)
    if space.problem is None:
        sys.exit(f"{file}: found no problem of this tuner, allowed what record-space wrote, or --hub")
    seeds = initial_configurations(space.feasible, space.problem, space.machine, space.threads)
    models = [model_of(each, space.problem, space.machine, space.threads) for each in space.feasible.spaces]
    costs = [
        np.full(len(index), np.nan) if model is None else model.costs(index, {})
        for model, index in zip(models, space.feasible.index, strict=True)
    ]
    return _row(file, space, np.array(seeds, int), np.concatenate(costs))


def _hub(file: Path, chip: str, multiprocessors: int, searches: int) -> dict[str, Any]:
    """Ranks all points by the model.

    The seeds are the initial configurations of different MWG x NWG, as in the tuner.
    """
    space = read_recorded(file)
    columns = KnobColumns(space.feasible.spaces[0], space.feasible.index[0])
    costs = hub_costs(columns, chip, multiprocessors)
    shapes: dict[tuple[float, float], int] = {}
    block_m, block_n = columns.numbers("MWG"), columns.numbers("NWG")
    for row in np.argsort(costs, kind="stable"):
        shapes.setdefault((block_m[row], block_n[row]), int(row))
    seeds = list(shapes.values())[:SEEDS]
    return _row(file, space, np.array(seeds), costs) | _searched(file, seeds, searches)


def _searched(file: Path, seeds: list[int], searches: int) -> dict[str, Any]:
    """Returns P of searches that begin with the seeds, and of searches without a warm start."""
    space = ReplaySpace.read(file)
    found = {}
    for name, first in (("begun_with_seeds", tuple(seeds)), ("from_nothing", ())):
        done = [replay(space, SEARCH, seed, EVALUATIONS, first) for seed in range(searches)]
        scores = [space.score(one.found_s) for one in done]
        if scores:
            error = float(np.std(scores, ddof=min(1, len(scores) - 1)) / len(scores) ** 0.5)
            found[name] = {"p": float(np.mean(scores)), "p_standard_error": error}
    return {"searches": found}


def hub_costs(columns: KnobColumns, chip: str, multiprocessors: int) -> Counts:
    """Returns the model's cycles of CLBlast's points."""
    limits = TURING if chip == TURING.name else chip_of(chip)
    return gpu.cycles(_clblast(columns, limits.capability), HUB_PROBLEM, limits, multiprocessors)


def _clblast(columns: KnobColumns, capability: int) -> GpuTiles:
    """Returns the meaning of CLBlast's knobs: https://github.com/CNugteren/CLBlast, xgemm_part1.opencl."""
    block_m, block_n, block_k = (columns.numbers(name) for name in ("MWG", "NWG", "KWG"))
    threads = columns.numbers("MDIMC") * columns.numbers("NDIMC")
    rows, across = block_m / columns.numbers("MDIMC"), block_n / columns.numbers("NDIMC")
    a, b = (_clblast_tile(columns, letter, capability) for letter in "AB")
    is_shared = {letter: columns.numbers(f"S{letter}") for letter in "AB"}
    spilled = np.maximum(rows * across + rows + across + FEW_REGISTERS - MAX_REGISTERS_PER_THREAD, 0)
    return GpuTiles(
        block_m=block_m,
        block_n=block_n,
        block_k=block_k,
        threads=threads,
        registers=np.minimum(
            rows * across + 2 * (rows + across) + ADDRESS_REGISTERS, MAX_REGISTERS_PER_THREAD
        ),
        shared_bytes=4 * block_k * (is_shared["A"] * block_m + is_shared["B"] * block_n),
        issued=rows * across + INSTRUCTIONS_OF_A_LOAD * (a[0] + b[0]),
        memory=a[1] + b[1] + SPILL_CYCLES * spilled / block_k,
        waits=LOAD_WAIT + np.where(is_shared["A"] * is_shared["B"] > 0, 0.0, LATENCY / 2),
        depth=np.zeros(len(threads)),
        splits=np.ones(len(threads)),
        more_launches=np.zeros(len(threads)),
    )


def _clblast_tile(columns: KnobColumns, letter: str, capability: int) -> tuple[Counts, Counts]:
    """Returns the accesses of a warp to a tile in one step of K, and their cycles.

    Threads of one row share the elements of A that they read, threads of one column the elements of B.
    """
    dim, across, block, vector = (("MDIMC", "MDIMA", "MWG", "VWM"), ("NDIMC", "NDIMB", "NWG", "VWN"))[
        letter == "B"
    ]
    names = ("MDIMC", dim, across, block, "KWG", vector, f"S{letter}")
    knobs = [columns.numbers(name) for name in names] + [columns.numbers("MDIMC") * columns.numbers("NDIMC")]
    pattern = partial(_clblast_accesses, is_b=letter == "B", capability=capability)
    accesses, cycles = (by_kind(knobs, lambda *kind, place=place: pattern(*kind)[place]) for place in (0, 1))
    return accesses, cycles


def _clblast_accesses(
    wide: int,
    own_threads: int,
    across: int,
    block: int,
    block_k: int,
    vector: int,
    shared: int,
    threads: int,
    *,
    is_b: bool,
    capability: int,
) -> tuple[float, float]:
    lanes = np.minimum(np.arange(WARP_THREADS), threads - 1)
    place = lanes // wide if is_b else lanes % wide
    work, vector = block // own_threads, min(vector, 4)
    width = min(vector, work)
    reads = work / width
    kind = "load_shared" if shared else "load_global"
    cycles = reads * access_cycles(kind, place * work, width, capability)
    if not shared:
        return reads, cycles
    per_m, per_k = block // across, block_k // max(threads // across, 1)
    width = min(vector, per_m)
    copies = per_k * per_m / width / block_k
    start, row = lanes % across * per_m, lanes // across * per_k
    cycles += copies * access_cycles("load_global", start + row * HUB_PROBLEM.sizes[0], width, capability)
    cycles += copies * access_cycles("store_shared", start + row * block, width, capability)
    return reads + 2 * copies, cycles


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
        "rank_correlation": rank_correlation(costs[is_known], times_s[is_known]),
        "points": [space.feasible.candidate(int(row)).text for row in seeds],
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument(
        "--hub", nargs=3, action="append", default=[], metavar=("FILE", "CHIP", "MULTIPROCESSORS")
    )
    parser.add_argument(
        "--searches", type=int, default=0, help="of --hub spaces, begun with the seeds or not"
    )
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
