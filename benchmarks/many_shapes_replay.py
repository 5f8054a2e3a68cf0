"""How fast one budget finds good configurations of many problems: replays of a matrix whose times are known.

    python -m benchmarks.many_shapes_replay MATRIX.json --seeds 5 --json

MATRIX.json has ``shapes`` ("128x768x768"), ``columns`` ("packed tile_m=8 ...", configurations of f32
matmuls, one thread) and ``points`` [shape][column]: null, or an object with the median seconds ``s``. A
budget is a share of all points. A problem counts by best time / time found; the total is the sum of
the best times / the sum of the times found; a problem not tried yet counts as five times slower.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.scheduler import ColumnPool, Scheduler
from tuner.core.candidate import Candidate, Value
from tuner.core.machine import variables_of
from tuner.core.matmul import Matmul
from tuner.core.problem_text import parse_shape
from tuner.core.processors import processor_of
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.tuning.pool import PoolProblem, projected_pool

SHARES = (0.05, 0.10, 0.15, 0.25, 0.50)
UNTRIED = 0.2  # efficiency (best time / time found) of a problem without a time
PENDING = 2  # proposals whose outcome is not known at a proposal: as with two compile workers
STRATEGIES = {"packed": "matmul_cpu_packed", "direct": "matmul_cpu_direct"}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("matrix", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processor", default="sapphirerapids", help="whose caches the cost model counts")
    add_report_options(parser)
    options = parser.parse_args()
    matrix = json.loads(options.matrix.read_text())
    pool = _pool(matrix, options.processor)
    times = [[None if point is None else point["s"] for point in row] for row in matrix["points"]]
    rows = [replayed(pool, times, seed) for seed in range(options.seeds)]
    summary = {key: round(statistics.mean(row[key] for row in rows), 4) for key in rows[0] if key != "seed"}
    settings = {"problems": len(pool.problems), "columns": len(pool.columns), "seeds": options.seeds}
    emit(report("many_shapes_replay", settings, rows, summary), options.json, options.output)
    if not options.json:
        print("\n".join(f"{key:20} {value:.3f}" for key, value in summary.items()))


def _pool(matrix: dict[str, Any], processor: str) -> ColumnPool:
    machine, space_file = processor_of(processor).machine, load_space_file(default_space_file())
    problems = []
    for shape in matrix["shapes"]:
        problem = Matmul(*parse_shape(shape))
        spaces = spaces_for(space_file, problem, machine.isa, variables_of(problem, machine, 1), None)
        problems.append(PoolProblem(problem, 1, spaces))
    columns = tuple(_candidate(text) for text in matrix["columns"])
    return projected_pool(tuple(problems), columns, machine, threads=1)


def _candidate(text: str) -> Candidate:
    short, *pairs = text.split()
    values: dict[str, Value] = {"split": "none"}
    for name, _, value in (pair.partition("=") for pair in pairs):
        values[name] = int(value) if value.isdigit() else value
    return Candidate.of(STRATEGIES[short], values)


def replayed(pool: ColumnPool, times: list[list[float | None]], seed: int) -> dict[str, Any]:
    """Returns the figures of one replay: geometric mean, worst, and total time, for each share."""
    points = sum(each is not None for row in pool.candidates for each in row)
    scheduler = Scheduler(pool, seed)
    for problem in range(len(pool.problems)):
        scheduler.end_sampler(problem)
    best = np.array([min(time for time in row if time is not None) for row in times])
    found = np.full(len(best), np.inf)
    marks = {round(points * share): share for share in SHARES}
    figures: dict[str, Any] = {"seed": seed}
    waiting: list[tuple[int, Candidate, float | None]] = []
    for number in range(max(marks)):
        suggestion = scheduler.suggest(number)
        if suggestion is None or suggestion.column is None:
            break
        problem, column = suggestion.problem, suggestion.column
        candidate = pool.candidates[problem][column]
        assert candidate is not None
        scheduler.take(problem, candidate)
        waiting.append((problem, candidate, times[problem][column]))
        if len(waiting) > PENDING:
            scheduler.tell(*waiting.pop(0))
        time = times[problem][column]
        found[problem] = min(found[problem], np.inf if time is None else time)
        if number + 1 in marks:
            figures |= _figures(best, found, marks[number + 1])
    return figures


def _figures(best: "np.ndarray[Any, Any]", found: "np.ndarray[Any, Any]", share: float) -> dict[str, float]:
    efficiency = np.where(np.isfinite(found), best / found, UNTRIED)
    total = best.sum() / (best / efficiency).sum()
    name = f"{share:.0%}"
    return {
        f"{name} geomean": float(np.exp(np.log(efficiency).mean())),
        f"{name} worst": float(efficiency.min()),
        f"{name} total": float(total),
    }


if __name__ == "__main__":
    main()
