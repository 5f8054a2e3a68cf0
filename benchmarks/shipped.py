"""Times what shipped results choose, and what ten seconds find, on shapes that are in no file.

    python -m benchmarks.shipped --json --output benchmarks/results/shipped.json

First ``tuner.matmul`` where nothing was tuned: seconds of the first call in a new environment, and 40
problems against numpy. Then 12 problems, one thread, each in databases of its own: a search of 120 trials,
whose first are the choices of the shipped results; and ``tuner tune --budget 10s``, with its wall time. The
best of the search, the first choice, the best of the first four trials, that of ten seconds, and what the
files of other classes of processors choose are then timed interleaved. A speed is the time of the search's
best over the other's, the median over the rounds. The exit status is 1 where a demanded figure is missed: a
first call of 1 s, none slower than numpy, ten seconds within 11 s and .98 (least .95), four trials .97.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tuner
from benchmarks.many_shapes.first_use_ratios import shipped_ratios
from benchmarks.many_shapes.pool import TOKENS, WEIGHTS
from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.portfolio import geometric_mean
from tuner.core.interfaces import Effort, Script
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_text import parse_shape
from tuner.core.trials import StoredTrial
from tuner.runtime.cpu.host import describe_machine, processors
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.tuning.pretuned import CLASSES, ShippedRule, class_of, picks_of, rule_of_class
from tuner.tuning.rule import ProblemSpaces

SHAPES = (
    *("72x72x72", "112x112x112", "250x250x250", "500x400x600", "704x704x704", "2x1024x2048"),
    *("12x768x1152", "24x1536x384", "200x100x50", "90x1000x270", "144x544x816", "1000x64x128"),
)
DTYPES = ("f32", "bf16", "i8")
TRIALS, FIRST, BUDGET_S = 120, 4, 10
WALL_LIMIT_S = 11.0
CALL_LIMIT_S = 1.0
SLOWER_LIMIT = 0.97  # of calls that end in np.matmul too: its time, and that of finding out
PARTS = ("matmul", "search")
EFFORT = Effort(budget_s=0.4, min_samples=15, max_samples=60)  # of one kernel
FIRST_CHOICE, FIRST_FOUR, TEN_SECONDS = NAMES = ("first choice", "first four trials", "ten seconds")
DEMANDED = {FIRST_FOUR: (0.97, 0.0), TEN_SECONDS: (0.98, 0.95)}  # geometric mean, least


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    rows: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    if "matmul" in options.parts:
        summary["matmul"] = _calls()
        print(summary["matmul"], file=sys.stderr, flush=True)
    for dtype in options.dtypes if "search" in options.parts else ():
        for shape in options.shapes:
            rows.append(_row(Matmul(*parse_shape(shape), dtype=dtype)))
            print(rows[-1], file=sys.stderr, flush=True)
        summary[dtype] = _summary([row for row in rows if row["dtype"] == dtype])
    settings = {"trials": TRIALS, "first": FIRST, "budget_s": BUDGET_S}
    emit(report("shipped", settings, rows, summary), options.json, options.output)
    print(summary, file=sys.stderr)
    sys.exit(any(each["missed"] for each in summary.values()))


def _row(problem: Problem) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "search.db"
        tuner.tune(problem, target="cpu", trials=TRIALS, baseline="best", db=database)
        trials = sorted(tuner.history(db=database), key=lambda each: each.number)
        timed = [each for each in trials if each.best_s is not None]
        best = _fastest(timed)
        ten = Path(folder) / "ten.db"
        command = ["tune", "matmul", problem.shape, "--dtype", problem.dtype, "--budget", f"{BUDGET_S}s"]
        command += ["--target", "cpu", "--db", str(ten)]
        start_s = time.monotonic()
        subprocess.run([sys.executable, "-m", "tuner", *command], check=True, capture_output=True)
        wall_s = time.monotonic() - start_s
        of_ten = _fastest([each for each in tuner.history(db=ten) if each.best_s is not None])
    chosen = (best, trials[0], _fastest([each for each in timed if each.number < FIRST]), of_ten)
    others = _of_other_classes(problem)
    scripts = [each.script_text for each in chosen]
    times = _interleaved(problem, [*scripts, *(text for texts in others.values() for text in texts)])
    speeds = [float(np.median(times[0] / own)) for own in times[1:]]
    rest = iter(speeds[len(NAMES) :])
    of_others = {name: [next(rest) for _ in texts] for name, texts in others.items()}
    return {
        "shape": problem.shape,
        "dtype": problem.dtype,
        "best_s": statistics.median(times[0].tolist()),
        "best": best.record.candidate.text,
        "wall_s": wall_s,
        "speeds": dict(zip(NAMES, speeds, strict=False)),
        "other_files": {
            name: {"first choice": own[0], "best of four": max(own)} for name, own in of_others.items()
        },
        "choices": dict(zip(NAMES, (each.record.candidate.text for each in chosen[1:]), strict=True)),
    }


CALL = """
import time, numpy as np, tuner
a, b = np.ones((100, 300), np.float32), np.ones((300, 200), np.float32)
start_s = time.perf_counter()
tuner.matmul(a, b)
print(time.perf_counter() - start_s)
"""


def _calls() -> dict[str, Any]:
    """Returns seconds of the first call of ``tuner.matmul`` in new environments, and its speed over numpy's.

    The 40 problems are those of ``benchmarks.many_shapes``: a ratio above 1 is faster than numpy.
    """
    first_s = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            new = os.environ | {
                "XDG_CACHE_HOME": folder,
                "XDG_DATA_HOME": folder,
                "OPENBLAS_NUM_THREADS": "1",
            }
            done = subprocess.run([sys.executable, "-c", CALL], env=new, check=True, capture_output=True)
            first_s.append(float(done.stdout))
    sizes = [(m, n, k) for n, k in WEIGHTS for m in TOKENS]
    rows = shipped_ratios([Matmul(*size) for size in sizes])
    ratios = [row["ratio"] for row in rows]
    missed = ["first call"] * (statistics.median(first_s) > CALL_LIMIT_S)
    missed += ["slower than numpy"] * (min(ratios) < SLOWER_LIMIT)
    return {
        "first_call_s": first_s,
        "over_numpy": {"geomean": geometric_mean(tuple(ratios)), "least": min(ratios)},
        "baseline_chosen": sum(row["candidate"] is None for row in rows),
        "ratios": {Matmul(*size).shape: ratio for size, ratio in zip(sizes, ratios, strict=True)},
        "missed": missed,
    }


def _of_other_classes(problem: Problem) -> dict[str, list[str]]:
    """Returns the scripts of the first choices of each file of another class, by class."""
    machine = describe_machine()
    space, found = ProblemSpaces.shipped(machine, threads=1), {}
    for one in CLASSES:
        rule = rule_of_class(one.name, problem.dtype, 1)
        if rule is None or one.name == class_of(machine) or one.isa != machine.isa:
            continue
        picks = picks_of(ShippedRule(rule, one.name, is_own=False), space, problem)
        if picks is not None:
            found[one.name] = [space.script(problem, each).text for each in picks.candidates[:FIRST]]
    return found


def _fastest(trials: list[StoredTrial]) -> StoredTrial:
    """Returns the trial with the least time: of a final re-measurement, where there are any."""
    final = [each for each in trials if each.final is not None]
    return min(final or trials, key=lambda each: each.best_s or 0.0)


def _interleaved(problem: Problem, scripts: list[str]) -> np.ndarray:
    """Returns seconds per call [kernel, round]; raises CandidateError for a kernel that is not right."""
    compiler, evaluator = CpuCompiler(), CpuEvaluator(1, processors(1))
    loaded = []
    for script in scripts:
        kernel = evaluator.load(problem, compiler.compile(problem, Script.of(script)))
        evaluator.verify(problem, kernel, np.random.default_rng(0))
        loaded.append(kernel)
    measured = evaluator.measure_together(problem, tuple(loaded), EFFORT, np.random.default_rng(0))
    return np.array([each.samples_s for each in measured], np.float64)


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"wall_s": max(row["wall_s"] for row in rows)}
    missed = ["wall_s"] if found["wall_s"] > WALL_LIMIT_S else []
    for name in NAMES:
        speeds = [row["speeds"][name] for row in rows]
        found[name] = {"geomean": geometric_mean(tuple(speeds)), "least": min(speeds)}
        geomean, least = DEMANDED.get(name, (0.0, 0.0))
        if found[name]["geomean"] < geomean or found[name]["least"] < least:
            missed.append(name)
    for name in dict.fromkeys(name for row in rows for name in row["other_files"]):
        for what in ("first choice", "best of four"):
            speeds = [row["other_files"][name][what] for row in rows if name in row["other_files"]]
            found[f"{name}, {what}"] = {"geomean": geometric_mean(tuple(speeds)), "least": min(speeds)}
    return found | {"missed": missed}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, metavar="MxNxK")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
