"""How many lines the f32 scripts of matmuls on a CPU have, over shapes, layouts, epilogues and strategies.

    python -m benchmarks.script_lengths --json
    python -m benchmarks.script_lengths --templates FOLDER    # of another commit, for instance
    python -m benchmarks.script_lengths --strategies          # of every strategy, for CPUs and GPUs

Counted are the bound scripts, without the header of an export, of preferred configurations drawn for a
processor with AVX-512, one thread. With ``--strategies`` they are the random feasible candidates of
``benchmarks.script_steps``: all types, one thread and two, processors with and without AVX-512, chips.
"""

import argparse
import itertools
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from tests.support.sampled_candidates import MACHINES, SampledCandidate, sampled
from tuner.core.errors import UsageError
from tuner.core.machine import variables_of
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS, Problem
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import strategy_folder

DIVIDED = ((128, 128, 128), (512, 512, 512), (1024, 1024, 1024), (16, 2048, 2048))
RAGGED = ((100, 100, 100), (333, 177, 91), (333, 777, 501), (1000, 700, 333))
STRATEGIES = ("matmul_cpu_packed", "matmul_cpu_direct", "matmul_cpu_dot")
MACHINE = "avx512"


def main() -> None:
    """Counts and prints."""
    options = _arguments()
    templates = options.templates.absolute()
    if options.strategies:
        rows = list(_rows_of_strategies(options.points, templates))
        groups = tuple(dict.fromkeys(row["group"] for row in rows))
    else:
        rows = list(_rows(options.points, templates))
        groups = ("divided", "ragged", "all")
    summary = {name: _summary(rows, name) for name in groups}
    for name, counts in summary.items():
        print(f"{name:<24} {counts}", file=sys.stderr)
    longest = max(rows, key=lambda row: row["lines"])
    print(f"{'longest':<24} {longest['candidate']}", file=sys.stderr)
    emit(report("script_lengths", {"points": options.points}, rows, summary), options.json, options.output)


def _rows(points: int, templates: Path) -> Iterator[dict[str, Any]]:
    for (m, n, k), layout, epilogue in itertools.product(DIVIDED + RAGGED, LAYOUTS, ("none", "bias_relu")):
        problem = Matmul(m, n, k, "f32", layout, epilogue)
        for strategy in STRATEGIES:
            feasible = _preferred(problem, strategy)
            if feasible is None:
                continue
            rng = np.random.default_rng(0)
            for row in rng.choice(feasible.rows, min(points, feasible.rows), replace=False):
                sample = SampledCandidate(problem, feasible.candidate(int(row)), 1, MACHINE)
                yield _row(sample, "divided" if (m, n, k) in DIVIDED else "ragged", templates)


def _rows_of_strategies(points: int, templates: Path) -> Iterator[dict[str, Any]]:
    for sample in sampled(points, seed=0):
        yield _row(sample, sample.candidate.strategy, templates)


def _row(sample: SampledCandidate, group: str, templates: Path) -> dict[str, Any]:
    lines = len(sample.script(templates).text.splitlines())
    return {"candidate": sample.text, "group": group, "lines": lines}


def _preferred(problem: Problem, strategy: str) -> FeasibleSet | None:
    """Returns the configurations that break no preference; None where there is none."""
    variables = variables_of(problem, MACHINES[MACHINE], 1)
    space_file = load_space_file(default_space_file())
    try:
        feasible = FeasibleSet.of(spaces_for(space_file, problem, MACHINE, variables, (strategy,)))
    except UsageError:
        return None
    preferred = feasible.part(feasible.is_preferred)
    return preferred if preferred.rows else None


def _summary(rows: list[dict[str, Any]], group: str) -> dict[str, Any]:
    lines = [row["lines"] for row in rows if group in (row["group"], "all")]
    return {
        "scripts": len(lines),
        "median": statistics.median(lines),
        "largest": max(lines),
        "up_to_130": sum(count <= 130 for count in lines) / len(lines),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--points", type=int, default=12, help="scripts of each problem and strategy, at most"
    )
    parser.add_argument("--strategies", action="store_true", help="a sample of every strategy")
    parser.add_argument("--templates", type=Path, default=strategy_folder(), help="a folder of templates")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
