"""Times one pool of configurations on 8 weights x 5 m of two transformers; portfolios, dispatch, first use.

    python -m benchmarks.many_shapes --json --output benchmarks/results/many_shapes.json

f32, one thread. Each cell is timed in two separate rounds, interleaved with all others of its problem; a
third follows where more than a tenth of them differ by more than 7 %. What counts is the time relative to the
others. All figures but the ratios to numpy's BLAS follow from that matrix: --matrix FILE computes them again
from an earlier document, and --first-use measures the ratios again, with the choices that it gives.
--quick: 2 weights x 2 m, 6 configurations, to see that it works. OPENBLAS_NUM_THREADS=1 keeps numpy's threads
from spinning.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.many_shapes.figures import figures
from benchmarks.many_shapes.first_use_ratios import call_overhead_s, first_use_ratios
from benchmarks.many_shapes.pool import TOKENS, WEIGHTS, Sizes, pool_of
from benchmarks.many_shapes.timed_cells import Cell, Cells, timed_cells
from benchmarks.results_file import add_report_options, emit, report
from tuner.analysis.portfolio import geometric_mean
from tuner.analysis.scheduler import ColumnPool
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate, candidate_document
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem_text import parse_shape
from tuner.runtime.cpu.host import describe_machine
from tuner.tuning.pool import PoolProblem, projected_pool
from tuner.tuning.rule import ProblemSpaces


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    started_s = time.monotonic()
    machine = describe_machine()
    if options.matrix is None:
        pool, cells = _measured(options, machine)
    else:
        pool, cells = read_document(options.matrix, machine)
    matrix = matrix_of(pool, cells)
    found = figures(matrix, pool)
    is_timed = options.matrix is None or options.first_use
    ratios = first_use_ratios(matrix, cells, machine) if is_timed else []
    if ratios:
        found["against_numpy_after_first_use"] = {
            "geomean": geometric_mean(tuple(row["ratio"] for row in ratios)),
            "least": min(row["ratio"] for row in ratios),
        }
    found["call_overhead_us"] = call_overhead_s() * 1e6
    found["cells"] = _counts(cells)
    found["seconds"] = time.monotonic() - started_s
    settings = {
        "quick": options.quick,
        "columns": [candidate_document(column) for column in pool.columns],
        "again_from": None if options.matrix is None else options.matrix.name,
    }
    rows = [_row(matrix, cells, place) for place in range(len(matrix.problems))]
    for row, ratio in zip(rows, ratios, strict=False):
        row["first_use"] = ratio
    print(json.dumps(_rounded(found), indent=1), file=sys.stderr)
    emit(report("many_shapes", settings, rows, _rounded(found)), options.json, options.output)


def _measured(options: argparse.Namespace, machine: Machine) -> tuple[ColumnPool, Cells]:
    sizes = Sizes(WEIGHTS, TOKENS, options.columns)
    if options.quick:
        sizes = Sizes(WEIGHTS[1:6:4], TOKENS[:2], 6)
    pool = pool_of(sizes, machine)
    return pool, timed_cells(pool, batch=len(sizes.tokens))


def read_document(file: Path, machine: Machine) -> tuple[ColumnPool, Cells]:
    """Returns the pool and the cells of an earlier document; costs are those of the model as it is now."""
    document = json.loads(file.read_text())
    columns = tuple(Candidate.of(each["strategy"], each["knobs"]) for each in document["settings"]["columns"])
    space = ProblemSpaces.shipped(machine, threads=1)
    problems = [Matmul(*parse_shape(row["shape"])) for row in document["rows"]]
    of_pool = tuple(PoolProblem(problem, 1, space.spaces(problem)) for problem in problems)
    cells = tuple(
        tuple(
            None if each is None else Cell(tuple(each["rounds_s"]), each["code"], each["failure"])
            for each in row["cells"]
        )
        for row in document["rows"]
    )
    return projected_pool(of_pool, columns, machine, threads=1), cells


def matrix_of(pool: ColumnPool, cells: Cells) -> TimeMatrix:
    """Returns the least times of cells; a cell that failed counts as one that does not apply."""
    times = tuple(tuple(None if cell is None else cell.time_s for cell in row) for row in cells)
    return TimeMatrix(
        problems=pool.problems,
        counts=pool.counts,
        columns=pool.columns,
        times_s=times,
        applies=tuple(tuple(time_s is not None for time_s in row) for row in times),
        costs=pool.costs,
    )


def _row(matrix: TimeMatrix, cells: Cells, place: int) -> dict[str, Any]:
    times = {column: time for column, time in enumerate(matrix.times_s[place]) if time is not None}
    best = min(times, key=lambda column: times[column])
    return {
        "shape": matrix.problems[place].shape,
        "best_s": times[best],
        "best": matrix.columns[best].text,
        "cells": [None if cell is None else asdict(cell) for cell in cells[place]],
    }


def _counts(cells: Cells) -> dict[str, int]:
    known = [cell for row in cells for cell in row if cell is not None]
    return {
        "cells": len(known),
        "codes": sum(len({cell.code for cell in row if cell is not None and cell.code}) for row in cells),
        "failed": sum(bool(cell.failure) for cell in known),
        "third_rounds": sum(len(cell.rounds_s) == 3 for cell in known),
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--columns", type=int, default=32, help="configurations of the pool")
    parser.add_argument("--quick", action="store_true", help="2 weights x 2 m, 6 configurations")
    parser.add_argument("--matrix", type=Path, help="compute the figures again from an earlier document")
    parser.add_argument("--first-use", action="store_true", help="with --matrix: measure the ratios again")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
