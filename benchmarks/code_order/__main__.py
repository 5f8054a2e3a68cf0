"""How well cycle counts of machine code rank kernels, on recorded spaces of a blocked GEMM.

    python -m benchmarks.code_order gemm_RTX_3090.json.gz sm_86 82 --points 400 --json

The recordings are CLBlast's GEMM, 4096 x 4096 x 4096 in f32, of
github.com/AutoTuningAssociation/benchmark_hub. Random points are compiled anew for the chip, by NVRTC from
``blocked_gemm.cu``; no GPU is needed.
"""

import argparse
import random
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.code_order.blocked_kernel import KNOBS, distinct
from benchmarks.code_order.compiled_point import predict
from benchmarks.code_order.nvrtc import Nvrtc
from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.ordering import ordering
from benchmarks.search.replay_space import ReplaySpace
from benchmarks.search.seed_rows import TURING
from tuner.core.gpu import chip_of
from tuner.gpu.target.compiler import locate


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    tool = locate("nvdisasm")
    if tool is None:
        sys.exit("nvdisasm: not found; pip install -e '.[bench]'")
    chip = TURING if options.chip == TURING.name else chip_of(options.chip)
    times_s = _recorded(options.file)
    chosen = random.Random(options.seed).sample(sorted(times_s), min(options.points, len(times_s)))
    nvrtc, rows = Nvrtc(), []
    for number, knobs in enumerate(chosen):
        try:
            cycles = predict(dict(knobs), chip, options.multiprocessors, nvrtc, tool)
        except ValueError as error:
            print(f"{dict(knobs)}: {str(error)[:300]}", file=sys.stderr)
            continue
        values = [value for _, value in knobs]
        rows.append({"knobs": values, "time_s": times_s[knobs], "cycles": round(cycles)})
        if number % 50 == 49:
            print(
                f"{number + 1} of {len(chosen)}: {_evaluated(rows)['rank_correlation']:.3f}", file=sys.stderr
            )
    asked = {name: getattr(options, name) for name in ("chip", "multiprocessors", "points", "seed")}
    settings = {"file": options.file.name, "knobs": KNOBS, **asked}
    emit(report("code_order", settings, rows, _evaluated(rows)), options.json, options.output)


def _evaluated(rows: list[dict[str, Any]]) -> dict[str, Any]:
    cycles, times = (np.array([row[name] for row in rows]) for name in ("cycles", "time_s"))
    return asdict(ordering(cycles, times, np.random.default_rng(0)))


def _recorded(file: Path) -> dict[tuple[tuple[str, int], ...], float]:
    """Returns the median time of each different program."""
    space = ReplaySpace.read(file)
    found: dict[tuple[tuple[str, int], ...], list[float]] = {}
    for row in np.flatnonzero(~np.isnan(space.times_s)):
        choices = dict(space.feasible.candidate(int(row)).choices)
        knobs = {name: int(choices[name]) for name in KNOBS}
        key = tuple(zip(KNOBS, distinct(knobs), strict=True))
        found.setdefault(key, []).append(float(space.times_s[row]))
    return {key: float(np.median(times)) for key, times in found.items()}


def _arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("file", type=Path)
    parser.add_argument("chip", help="compute capability of the recorded GPU, such as sm_86")
    parser.add_argument("multiprocessors", type=int)
    parser.add_argument("--points", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
