"""How well the cost model ranks schedules before any was run, on recorded spaces.

    python -m benchmarks.ranking --json --output benchmarks/results/ranking.json

For each recorded space and strategy: rank correlation of counted cycles and times, and how much slower than
the optimum the best of the first 1, 8 and 16 is. The model is accepted for a strategy where the correlation
is 0.8 or more and 8 random points are no faster than its first 8 in 95 % of draws. Next to it is an upper
bound: an order that knows, for every register tile and unrolling, the median factor by which it is slower
than counted, from the same times that evaluate the order; no count from the innermost loop's machine code can
know more.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.ordering import FIRST, Ordering, ordering
from tuner.core.errors import UsageError
from tuner.search.cost_model.configurations import KnobColumns, model_of
from tuner.space.recorded.reading import read_recorded

SPACES = Path(__file__).parent / "spaces"
INNERMOST = ("tile_m", "tile_n", "unroll_k")  # the knobs that make the innermost loop

Numbers = npt.NDArray[np.float64]


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    try:
        rows = [row for file in options.files for row in _rows(file, options.seed)]
    except UsageError as error:
        sys.exit(f"ranking: {error}")
    if not rows:
        sys.exit("ranking: found no strategy with a model, allowed recordings of this tuner's strategies")
    for row in rows:
        print(_line(row), file=sys.stderr)
    settings = {"files": [file.name for file in options.files], "seed": options.seed}
    emit(report("ranking", settings, rows, _summary(rows)), options.json, options.output)


def _rows(file: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yields a row per strategy that has a model."""
    space = read_recorded(file)
    if space.problem is None:
        raise UsageError(f"{file}: found no problem of this tuner, allowed what record-space wrote")
    start = 0
    for each, index in zip(space.feasible.spaces, space.feasible.index, strict=True):
        times_s = space.times_s[start : start + len(index)]
        start += len(index)
        model = model_of(each, space.problem, space.machine, space.threads)
        if model is not None and np.isfinite(times_s).any():
            costs, columns = model.costs(index, {}), KnobColumns(each, index)
            known = knowing_loops(costs, times_s, np.array([columns.numbers(name) for name in INNERMOST]))
            evaluated = (ordering(order, times_s, np.random.default_rng(seed)) for order in (costs, known))
            found, best = map(_document, evaluated)
            yield {"file": file.name, "strategy": each.strategy, **found, "knowing_loops": best}


def knowing_loops(costs: Numbers, times_s: Numbers, loops: Numbers) -> Numbers:
    """Returns costs that are right for each loop (a column of ``loops``) in the median of its times."""
    which = np.unique(loops, axis=1, return_inverse=True)[1].ravel()
    ratios = times_s / costs
    medians = [np.nanmedian(ratios[which == loop]) for loop in range(which.max() + 1)]
    known: Numbers = costs * np.array(medians)[which]
    return known


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    evaluated = {"model": rows, "knowing_loops": [row["knowing_loops"] for row in rows]}
    return {
        "accepted": sum(row["is_accepted"] for row in rows),
        "of": len(rows),
        **{
            name: {
                "mean_rank_correlation": statistics.mean(row["rank_correlation"] for row in found),
                "mean_regret": {
                    first: statistics.mean(row["regret"][first] for row in found) for first in FIRST
                },
            }
            for name, found in evaluated.items()
        },
        "random": {first: statistics.mean(row["random_regret"][first] for row in rows) for first in FIRST},
    }


def _document(found: Ordering) -> dict[str, Any]:
    return {
        "points": found.points,
        "rank_correlation": found.rank_correlation,
        "regret": dict(found.regret),
        "random_regret": dict(found.random_regret),
        "beats_random": found.beats_random,
        "is_accepted": found.is_accepted,
    }


def _line(row: dict[str, Any]) -> str:
    regret = " ".join(f"{share:.1%} @{first}" for first, share in row["regret"].items())
    at_random = " ".join(f"{share:.1%} @{first}" for first, share in row["random_regret"].items())
    return (
        f"{row['file']} {row['strategy']}: rank correlation {row['rank_correlation']:.2f}, regret {regret} "
        f"(at random {at_random}): {'accepted' if row['is_accepted'] else 'not accepted'}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    committed = sorted(SPACES.rglob("*.t4.json.gz"))
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", default=committed)
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
