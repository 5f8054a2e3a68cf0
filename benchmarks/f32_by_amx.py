"""Tunes f32 by six products of bf16 on AMX; compares it with f32 of each library, interleaved, one thread.

    python -m benchmarks.f32_by_amx --trials 60 --json

Libraries: those of ``--baseline best`` that are installed (OpenBLAS of numpy, MKL, BLIS, oneDNN), and
PyTorch's ``mm``, which calls the BLAS that it was built with (MKL on x86). A ratio above 1 means that bf16x6
is faster; that of a row is the one against the fastest library.
"""

import argparse
import sys
import tempfile
from dataclasses import asdict
from typing import Any

import numpy as np

import tuner
from benchmarks.paired_timing import contest, contest_with, load
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.interfaces import Effort
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.core.records import Measurement
from tuner.runtime import timing
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import library_environment
from tuner.targets.cpu.baseline_libraries import BEST, chosen_libraries, find_module

SHAPES = ("512x512x512", "1024x1024x1024", "2048x2048x2048")
TORCH = "torch"


class TorchRival:
    """Serves samples of PyTorch's product of f32, on one thread."""

    def __init__(self, problem: Problem) -> None:
        import torch

        torch.set_num_threads(1)
        m, n, k = problem.sizes
        self._a = torch.randn(m, k)
        self._b = torch.randn(k, n)
        self._c = torch.empty(m, n)
        self._mm = torch.mm
        self._rng = np.random.default_rng(0)

    def sample(self, effort: Effort) -> Measurement:
        """Times one sample."""
        return timing.measure_by(timing.stopwatch_of(self._repeat), effort, self._rng)

    def _repeat(self, times: int) -> None:
        for _ in range(times):
            self._mm(self._a, self._b, out=self._c)


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = []
    for shape in options.shapes:
        rows.append(_row(Matmul(*parse_shape(shape), dtype="bf16x6"), options))
        row = rows[-1]
        print(f"{row['shape']:15s} {row['ratio']:.3f} to {row['library']}", file=sys.stderr, flush=True)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    summary = {"worst": min(row["ratio"] for row in rows)}
    emit(report("f32_by_amx", settings, rows, summary), options.json, options.output)


def _row(problem: Problem, options: argparse.Namespace) -> dict[str, Any]:
    """Tunes one shape without a warm start; returns its comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        db = f"{folder}/bench.db"
        run = tuner.tune(problem, target="cpu", threads=1, trials=options.trials, seed=options.seed, db=db)
    if run.best is None:
        raise SystemExit(f"{problem.key}: no candidate worked")
    script = run.best.script_text
    busy = load()
    contests = {name: contest(problem, script, 1, name) for name in chosen_libraries(BEST, problem)}
    if find_module(TORCH):
        rival = Factory("benchmarks.f32_by_amx:TorchRival", (problem,))
        contests[TORCH] = contest_with(problem, script, 1, rival, library_environment(1))
    library = min(contests, key=lambda name: contests[name].baseline_s / contests[name].kernel_s)
    return {
        "shape": problem.shape,
        "ratio": contests[library].ratio,
        "library": library,
        "contests": {name: asdict(compared) for name, compared in contests.items()},
        "knobs": dict(run.best.record.candidate.choices),
        "load": busy,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="MxNxK ...")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
