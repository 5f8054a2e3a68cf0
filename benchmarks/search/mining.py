"""Evaluation of mined constraints: a public GEMM whose real constraints are hidden, tried at random points.

    python -m benchmarks.search.mining gemm_RTX_3090.json.gz --json

Points of the Cartesian product are drawn; points that CLBlast refuses count as failures. The suggestions are
then applied to the whole product: reported are the share of refused points that they reject, and the share of
working points that they lose, as the first share alone would be easy to reach.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.feasible_set import recorded_space
from tuner.analysis.constraint_mining import Observation, mine
from tuner.core.errors import Failure, Stage
from tuner.space.enumeration import Indices, cartesian_blocks, cartesian_sample
from tuner.space.expressions import parse
from tuner.space.feasible_set import FeasibleSet
from tuner.space.search_space import Rule, SearchSpace, Truth

REFUSED = Failure(Stage.COMPILE, "configuration is not valid")


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    space, recorded = recorded_space(options.file)
    if FeasibleSet.of((space,)).rows != len(recorded):
        sys.exit(f"{options.file}: its configurations are not those that CLBlast allows")
    every = np.concatenate(list(cartesian_blocks(space)))
    works = _allowed(space, [each.text for each in space.constraints], every)
    rows = [_row(space, count, options.seeds, every, works) for count in options.trials]
    for row in rows:
        print(
            f"{row['trials']:6d} trials: {row['constraints']:.1f} constraints reject "
            f"{row['rejected_share']:.1%} of what fails, lose {row['lost_share']:.2%} of what works, "
            f"{row['median_s']:.2f} s",
            file=sys.stderr,
        )
    settings = {"file": options.file.name, "trials": options.trials, "seeds": options.seeds}
    emit(report("mining", settings, rows, {}), options.json, options.output)


def _row(space: SearchSpace, count: int, seeds: int, every: Indices, works: Truth) -> dict[str, Any]:
    runs = [_mined(space, count, seed, every, works) for seed in range(seeds)]
    return {
        "trials": count,
        "constraints": statistics.mean(len(run["found"]) for run in runs),
        "rejected_share": statistics.mean(run["rejected_share"] for run in runs),
        "lost_share": statistics.mean(run["lost_share"] for run in runs),
        "lost_share_worst": max(run["lost_share"] for run in runs),
        "median_s": statistics.median(run["seconds"] for run in runs),
        "found_by_first_seed": runs[0]["found"],
    }


def _mined(space: SearchSpace, count: int, seed: int, every: Indices, works: Truth) -> dict[str, Any]:
    drawn = cartesian_sample(space, count, np.random.default_rng(seed))
    drawn_works = _allowed(space, [each.text for each in space.constraints], drawn)
    observations = tuple(
        Observation(_values(space, row), None if is_right else REFUSED, 1, "gemm")
        for row, is_right in zip(drawn, drawn_works, strict=True)
    )
    start = time.perf_counter()
    found = [each.constraint for each in mine(observations, space.names)]
    seconds = time.perf_counter() - start
    kept = _allowed(space, found, every)
    return {
        "found": found,
        "seconds": seconds,
        "rejected_share": float(np.mean(~kept[~works])),
        "lost_share": float(np.mean(~kept[works])),
    }


def _values(space: SearchSpace, row: Indices) -> tuple[tuple[str, int | str], ...]:
    return tuple((knob.name, knob.choices[int(pick)]) for knob, pick in zip(space.knobs, row, strict=True))


def _allowed(space: SearchSpace, constraints: list[str], rows: Indices) -> Truth:
    allowed = np.ones(len(rows), bool)
    for text in constraints:
        rule = Rule.of(space, parse(text, "benchmark"))
        allowed &= rule.holds({knob: rows[:, knob] for knob in rule.knobs})
    return allowed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="a recorded GEMM space of benchmark_hub")
    parser.add_argument("--trials", type=int, nargs="*", default=[100, 200, 500, 1000, 4000])
    parser.add_argument("--seeds", type=int, default=10)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
