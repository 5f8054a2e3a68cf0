"""Times programs of one matmul next to the tuned matmul of the same size, interleaved in one process.

    python -m benchmarks.program_matmuls --json --output benchmarks/results/program_matmuls.json

Each matmul is tuned on one thread. Its program, MLIR text of the matmul with its epilogue, is compiled twice:
with the database of that tuning, and without one, as a program is that nobody tuned. The three are called in
turns, on the same inputs. A ratio is the program's time over the matmul's: above 1 the program is slower.
"""

import argparse
import ctypes
import itertools
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tuner
from benchmarks.paired_timing import load
from benchmarks.results_file import add_report_options, emit, report, seconds_option
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.numpy_types import DTYPES
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.models.run.fused_program import FusedFunction
from tuner.payload.cpu import has_epilogue, maps_attribute, tensor_type, zero
from tuner.results.database import open_or_create
from tuner.runtime.cpu.memory import placed_empty
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

SHAPES = ("256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "333x1777x901")
EPILOGUES = ("none", "bias_relu", "gelu", "residual")
LAYOUTS = ("nn", "nt", "tn")
LIMIT = 1.05  # of a ratio
LEAST_S = 0.5e-3  # of one sample: short kernels are called several times
Array = np.ndarray[Any, Any]


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows = []
    for dtype, shape in itertools.product(options.dtypes, options.shapes):
        for layout, epilogue in itertools.product(options.layouts, options.epilogues):
            m, n, k = parse_shape(shape)
            rows.append(_row(Matmul(m, n, k, dtype, layout, epilogue), options))
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    settings = {name: value for name, value in vars(options).items() if name not in ("json", "output")}
    emit(report("program_matmuls", settings, rows, summary(rows)), options.json, options.output)


def program_text(problem: Problem) -> str:
    """Returns MLIR text of a function on tensors that computes a matmul with its epilogue."""
    a, b = (tensor_type(shape, problem.stored_dtype) for shape in (problem.a_shape, problem.b_shape))
    sums = problem.accumulator
    result = problem.result_dtype
    product, c = (tensor_type(problem.c_shape, element) for element in (sums, result))
    extra = [(f"%{own.name}", tensor_type(own.shape, own.dtype)) for own in problem.extra_arguments]
    parameters = "".join(f", {name}: {type_}" for name, type_ in extra)
    finished = "%product"
    lines = ""
    if has_epilogue(problem):
        finished = "%result"
        epilogue = problem.after_product
        results = ["(m, n)", *(argument.map_results for argument in epilogue.arguments), "(m, n)"]
        maps = ", ".join(f"affine_map<(m, n) -> {indices}>" for indices in results)
        inputs = [("%product", product), *extra]
        names, types = (", ".join(texts) for texts in zip(*inputs, strict=True))
        body = "\n".join(epilogue.scalar_lines(sums, result, "%zero"))
        lines = f"""  %output = tensor.empty() : {c}
  %result = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
    ins({names} : {types}) outs(%output : {c}) {{
  ^bb0(%sum: {sums}, {epilogue.scalar_arguments(result)}%before: {result}):
{body}
  }} -> {c}
"""
    return f"""func.func @main(%a: {a}, %b: {b}{parameters}) -> {c} {{
  %zero = arith.constant {zero(sums)}
  %empty = tensor.empty() : {product}
  %cleared = linalg.fill ins(%zero : {sums}) outs(%empty : {product}) -> {product}
  %product = linalg.matmul {maps_attribute("matmul", problem.layout)}
    ins(%a, %b : {a}, {b}) outs(%cleared : {product}) -> {product}
{lines}  return {finished} : {c}
}}
"""


@dataclass(frozen=True)
class Rival:
    """A function to be timed: ``call(times)`` runs it so often."""

    name: str
    strategy: str
    call: Callable[[int], None]


def _row(problem: Problem, options: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    inputs = tuple(_drawn(argument.shape, argument.dtype, rng) for argument in problem.arguments[:-1])
    text = program_text(problem)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bench.db"
        run = tuner.tune(problem, target="cpu", threads=1, trials=options.trials, db=database)
        if run.best is None:
            raise SystemExit(f"{problem.key}: no candidate worked")
        tuned = tuner.compile_program(text, "cpu", db=database)
        with open_or_create(Path(folder) / "empty.db"):
            untuned = tuner.compile_program(text, "cpu", db=Path(folder) / "empty.db")
    strategy = run.best.record.candidate.strategy
    rivals = [
        _matmul(problem, run.best.script_text, inputs, strategy),
        _program("tuned", tuned, inputs),
        _program("untuned", untuned, inputs),
    ]
    times_s = _in_turns(rivals, options.seconds)
    row: dict[str, Any] = {"problem": problem.key, "matmul_s": min(times_s["matmul"]), "load": load()}
    for rival in rivals[1:]:
        pairs = zip(times_s[rival.name], times_s["matmul"], strict=True)
        low, middle, high = statistics.quantiles([own / matmul for own, matmul in pairs], n=4)
        row[rival.name] = {"ratio": middle, "low": low, "high": high, "strategy": rival.strategy}
    return row | {"strategy": strategy, "knobs": dict(run.best.record.candidate.choices)}


def _drawn(shape: tuple[int, ...], element: str, rng: np.random.Generator) -> Array:
    array: Array = placed_empty(shape, DTYPES[element])
    array[...] = rng.integers(-100, 100, shape) if element.startswith("i") else rng.standard_normal(shape)
    return array


def _matmul(problem: Problem, script: str, inputs: tuple[Array, ...], strategy: str) -> Rival:
    kernel = CpuEvaluator(1).load(problem, CpuCompiler().compile(problem, Script.of(script)))
    c = placed_empty(problem.c_shape, DTYPES[problem.result_dtype])
    calls = kernel.calls((*inputs, c))
    ((address, argument),) = calls.calls
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def call(times: int, _keeps: object = calls) -> None:
        for _ in range(times):
            function(argument)

    return Rival("matmul", strategy, call)


def _program(name: str, program: Any, inputs: tuple[Array, ...]) -> Rival:
    assert isinstance(program, FusedFunction), "one matmul is compiled as a fusion"
    prepared = program.prepare(*inputs)
    strategies = ", ".join(fusion.strategy or fusion.kind for fusion in program.code.fusions)
    return Rival(name, strategies, lambda times: program.repeat(prepared, times))


def _in_turns(rivals: list[Rival], seconds: float) -> dict[str, list[float]]:
    for rival in rivals:
        rival.call(1)
    start_s = time.perf_counter()
    rivals[0].call(1)
    times = max(1, math.ceil(LEAST_S / (time.perf_counter() - start_s)))
    samples_s: dict[str, list[float]] = {rival.name: [] for rival in rivals}
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        for rival in rivals:
            start_s = time.perf_counter()
            rival.call(times)
            samples_s[rival.name].append((time.perf_counter() - start_s) / times)
    return samples_s


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the greatest ratio, the geometric mean, and how many are above the limit, tuned and untuned."""
    result: dict[str, Any] = {}
    for name in ("tuned", "untuned"):
        ratios = [row[name]["ratio"] for row in rows]
        result[name] = {
            "geomean": statistics.geometric_mean(ratios),
            "greatest": max(ratios),
            "above_limit": sum(ratio > LIMIT for ratio in ratios),
        }
    return result


def _line(row: dict[str, Any]) -> str:
    shown = [f"{name} {row[name]['ratio']:.3f} ({row[name]['strategy']})" for name in ("tuned", "untuned")]
    return f"{row['problem']}: {row['strategy']} {row['matmul_s'] * 1e3:.3f} ms, {', '.join(shown)}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=SHAPES)
    parser.add_argument("--layouts", nargs="+", default=LAYOUTS, choices=LAYOUTS)
    parser.add_argument("--epilogues", nargs="+", default=EPILOGUES)
    parser.add_argument("--dtypes", nargs="+", default=("f32",))
    parser.add_argument("--trials", type=int, default=16, help="of each matmul's tuning")
    parser.add_argument("--seconds", type=seconds_option, default=2.0, help="of timing each row")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
