"""Times tuned matmuls with an epilogue and PyTorch's linear layer with the same operations, interleaved.

    python -m benchmarks.epilogues --json --output benchmarks/results/epilogues.json

Both multiply by weights of n x k (layout nt) on one thread, each in a process of its own. With --constant
the kernel's weights are packed ahead. PyTorch runs ``linear`` and the operation after it in eager mode,
without gradients, called from Python. A ratio above 1 means that the tuned kernel is faster.
"""

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import tuner
from benchmarks.paired_timing import contest_with, load
from benchmarks.results_file import add_report_options, emit, report
from tuner.core.interfaces import Effort
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.runtime.workers.protocol import Factory
from tuner.runtime.workers.services import library_environment

SHAPES = (
    *("128x768x768", "128x3072x768", "128x768x3072", "512x768x768"),
    *("512x1024x1024", "32x1024x1024", "256x1024x512", "64x2048x512"),
)
EPILOGUES = ("bias_gelu", "bias_silu", "residual")
DTYPES = ("f32", "bf16")


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = []
    for dtype in options.dtypes:
        for epilogue in options.epilogues:
            for shape in options.shapes:
                rows.append(_row(_problem(shape, dtype, epilogue, options.constant), options))
                print(_line(rows[-1]), file=sys.stderr, flush=True)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    summary = _summary(rows)
    print(summary, file=sys.stderr)
    emit(report("epilogues", settings, rows, summary), options.json, options.output)


def _problem(shape: str, dtype: str, epilogue: str, is_constant: bool) -> Problem:
    m, n, k = parse_shape(shape)
    output = "bf16" if dtype == "bf16" else ""
    weights = "constant" if is_constant else ""
    return Matmul(m, n, k, dtype, "nt", epilogue, output, weights=weights)


def _row(problem: Problem, options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run = tuner.tune(problem, target="cpu", threads=1, trials=options.trials, db=f"{folder}/bench.db")
    if run.best is None:
        raise SystemExit(f"{problem.key}: no candidate worked")
    layer = Factory("benchmarks.epilogues:TorchLayer", (problem,))
    compared = contest_with(problem, run.best.script_text, 1, layer, library_environment(1))
    return {
        "problem": problem.key,
        "ratio": compared.ratio,
        "contest": asdict(compared),
        "strategy": run.best.record.candidate.strategy,
        "knobs": dict(run.best.record.candidate.choices),
        "load": load(),
    }


@dataclass(frozen=True)
class TimedCalls:
    """Times of calls, as ``benchmarks.paired_timing`` reads them."""

    median_s: float


class TorchLayer:
    """Serves samples of a linear layer with its epilogue in PyTorch, in a child process."""

    def __init__(self, problem: Problem) -> None:
        """Draws inputs of the problem's shapes."""
        import torch

        torch.set_num_threads(1)
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[problem.dtype]
        tensors = {
            argument.name: torch.randn(argument.shape).to(dtype) for argument in problem.arguments[:-1]
        }
        self._call = _layer(problem.epilogue, tensors)
        self._mode = torch.inference_mode

    def sample(self, effort: Effort) -> TimedCalls:
        """Times single calls for as long as ``effort`` says, after two calls that are not counted."""
        with self._mode():
            self._call()
            self._call()
            times_s: list[float] = []
            began_s = time.perf_counter()
            while len(times_s) < effort.min_samples or time.perf_counter() - began_s < effort.budget_s:
                start_s = time.perf_counter()
                self._call()
                times_s.append(time.perf_counter() - start_s)
        return TimedCalls(statistics.median(times_s))


def _layer(epilogue: str, tensors: dict[str, Any]) -> Callable[[], Any]:
    from torch.nn import functional

    a, b, bias = tensors["a"], tensors["b"], tensors.get("bias")
    match epilogue:
        case "bias_gelu":
            return lambda: functional.gelu(functional.linear(a, b, bias))
        case "bias_silu":
            return lambda: functional.silu(functional.linear(a, b, bias))
        case "residual":
            return lambda: functional.linear(a, b) + tensors["addend"]
    raise ValueError(f"epilogue: found {epilogue!r}, allowed {', '.join(EPILOGUES)}")


def _line(row: dict[str, Any]) -> str:
    times = row["contest"]
    return f"{row['problem']:48s} {row['ratio']:6.3f}  {times['kernel_s'] * 1e6:9.1f} us  {row['strategy']}"


def _summary(rows: list[dict[str, Any]]) -> dict[str, float]:
    ratios = [row["ratio"] for row in rows]
    return {"geomean": math.prod(ratios) ** (1 / len(ratios)), "least": min(ratios)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="MxNxK ...")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--epilogues", nargs="+", default=EPILOGUES, choices=EPILOGUES)
    parser.add_argument("--constant", action="store_true", help="weights are packed ahead")
    parser.add_argument("--trials", type=int, default=24)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
