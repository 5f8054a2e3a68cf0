"""How long a feasible set takes and how much memory: spaces of 1e5 to 1e8 combinations, and a public GEMM's.

    python -m benchmarks.search.feasible_set --json
    python -m benchmarks.search.feasible_set --hub gemm_RTX_3090.json.gz

Each space is enumerated in a process of its own; its peak memory is shown next to that of importing alone.
``--hub`` takes files of github.com/AutoTuningAssociation/benchmark_hub, whose configurations must be exactly
what is feasible under the constraints of CLBlast.
"""

import argparse
import multiprocessing
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.results_file import add_report_options, emit, report
from tuner.core.candidate import Candidate
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Knob, SearchSpace

KIB = 2**10
# https://github.com/CNugteren/CLBlast, src/kernels/level3/xgemm_part1.opencl and its tuner
CLBLAST = (
    "KWG % KWI == 0",
    "MWG % (MDIMC * VWM) == 0",
    "NWG % (NDIMC * VWN) == 0",
    "MWG % (MDIMA * VWM) == 0",
    "NWG % (NDIMB * VWN) == 0",
    "KWG % (MDIMC * NDIMC // MDIMA) == 0",
    "KWG % (MDIMC * NDIMC // NDIMB) == 0",
)
GEMM_KNOBS: dict[str, tuple[int | str, ...]] = {
    "tile_m": (16, 32, 48, 64, 96, 128, 192, 256),
    "tile_n": (16, 32, 48, 64, 96, 128, 192, 256),
    "tile_k": (8, 16, 32, 64),
    "warps_m": (1, 2, 3, 4, 6, 8),
    "warps_n": (1, 2, 3, 4, 6, 8),
    "stages": (1, 2, 3, 4, 5),
    "vector": (1, 2, 4, 8),
    "swizzle": ("none", "xor", "pad"),
    "unroll": (1, 2, 4, 8),
    "group": (1, 2, 4, 8, 16),
    "splits": (1, 2, 4, 8),
    "order": ("mn", "nm"),
    "prefetch": (0, 1, 2),
}
GEMM_RULES = (
    "tile_m % (16 * warps_m) == 0",
    "tile_n % (8 * warps_n) == 0",
    "warps_m * warps_n <= 16",
    "stages * tile_k * (tile_m + tile_n) * 2 <= 232448",
    "tile_m * tile_k % (32 * warps_m * warps_n * vector) == 0",
    "tile_k % unroll == 0",
)


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    spaces = [(f"{kind} 1e{power}", kind, power) for power in range(5, 9) for kind in ("free", "gemm")]
    rows = [_measured(name, _generated(kind, 10**power), options.repeats) for name, kind, power in spaces]
    for path in options.hub:
        space, recorded = recorded_space(path)
        _require_recorded(path, FeasibleSet.of((space,)), recorded)
        rows.append(_measured(path.name, space, options.repeats))
    for row in rows:
        print(
            f"{row['space']:24s} {row['cartesian']:>11d} combinations, {row['feasible']:>10d} feasible, "
            f"{row['rows']:>9d} rows: {row['median_s']:.3f} s, {row['peak_mib']:.0f} MiB",
            file=sys.stderr,
        )
    emit(report("space", {"repeats": options.repeats}, rows, _summary(rows)), options.json, options.output)


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ten_million = [row for row in rows if row["space"].endswith("1e7")]
    return {
        "slowest_1e7_s": max(row["median_s"] for row in ten_million),
        "peak_mib": max(row["peak_mib"] for row in rows),
    }


def _measured(name: str, space: SearchSpace, repeats: int) -> dict[str, Any]:
    """Enumerates in fresh processes; returns the largest peak memory and the median time."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        done = [pool.apply(_enumerated, (space,)) for _ in range(repeats)]
    return {
        "space": name,
        "cartesian": space.cartesian,
        "constraints": len(space.constraints),
        "rows": done[0]["rows"],
        "feasible": done[0]["feasible"],
        "is_sample": done[0]["is_sample"],
        "median_s": statistics.median(each["seconds"] for each in done),
        "times_s": [each["seconds"] for each in done],
        "matrix_s": statistics.median(each["matrix_s"] for each in done),
        "peak_mib": max(each["peak_mib"] for each in done),
        "imports_mib": done[0]["imports_mib"],
    }


def _enumerated(space: SearchSpace) -> dict[str, Any]:
    before_mib = _peak_mib()
    start = time.perf_counter()
    feasible = FeasibleSet.of((space,))
    seconds = time.perf_counter() - start
    peak_mib = _peak_mib()
    start = time.perf_counter()
    feasible.matrix()
    return {
        "rows": feasible.rows,
        "feasible": feasible.total,
        "is_sample": feasible.is_sample,
        "seconds": seconds,
        "matrix_s": time.perf_counter() - start,
        "peak_mib": peak_mib,
        "imports_mib": before_mib,
    }


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB


def _generated(kind: str, combinations: int) -> SearchSpace:
    """Returns a space of about so many combinations: unconstrained, or with constraints of an MMA matmul."""
    if kind == "free":
        digits = len(str(combinations)) - 1
        return SearchSpace("free", tuple(Knob(f"knob_{n}", tuple(range(10))) for n in range(digits)))
    knobs: list[Knob] = []
    left = float(combinations)
    for name, choices in GEMM_KNOBS.items():
        knobs.append(Knob(name, choices[: max(1, min(len(choices), round(left)))]))
        left /= len(knobs[-1].choices)
    return SearchSpace("gemm", tuple(knobs), tuple(parse(text, "benchmark") for text in GEMM_RULES))


def recorded_space(path: Path) -> tuple[SearchSpace, list[Candidate]]:
    """Returns the space of a recorded file, and its configurations."""
    from tuner.space.recorded.recording import (
        open_recorded,  # not at the top: what the children import is measured
    )

    recorded = open_recorded(path).document
    names = recorded["tune_params"]
    knobs = tuple(Knob(name, tuple(choices)) for name, choices in names.items())
    space = SearchSpace("xgemm", knobs, tuple(parse(text, "CLBlast") for text in CLBLAST))
    points = recorded["cache"].values()
    return space, [Candidate.of("xgemm", {name: point[name] for name in names}) for point in points]


def _require_recorded(path: Path, feasible: FeasibleSet, recorded: list[Candidate]) -> None:
    """Exits unless the feasible set equals the recorded configurations."""
    missed = sum(feasible.row_of(each) is None for each in recorded)
    if missed or feasible.rows != len(recorded):
        sys.exit(f"{path}: {feasible.rows} feasible, {len(recorded)} recorded, {missed} of them not feasible")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hub", type=Path, nargs="*", default=[], help="recorded GEMM spaces")
    parser.add_argument("--repeats", type=int, default=3)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
