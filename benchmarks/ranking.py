"""How well the model of the machine orders schedules before any was run, on spaces that were measured wholly.

    python -m benchmarks.ranking --json --output benchmarks/results/ranking.json

For each recorded space and strategy: rank correlation of counted cycles and times, and how much slower than
the optimum the best of the first 1, 8 and 16 is. The model is accepted for a strategy where the correlation
is 0.8 or more and 8 random ones are no faster than its first 8 in 95 % of draws.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results_file import add_report_options, emit, report
from benchmarks.search.ordering import Ordering, ordering
from tuner.core.errors import UsageError
from tuner.cost_model.row_cost import model_of
from tuner.recorded.reading import read_recorded

SPACES = Path(__file__).parent / "spaces"


def main() -> None:
    """Runs the benchmark."""
    words = _arguments()
    try:
        rows = [row for file in words.files for row in _rows(file, words.seed)]
    except UsageError as error:
        sys.exit(f"ranking: {error}")
    for row in rows:
        print(_line(row), file=sys.stderr)
    accepted = sum(row["is_accepted"] for row in rows)
    settings = {"files": [file.name for file in words.files], "seed": words.seed}
    emit(report("ranking", settings, rows, {"accepted": accepted, "of": len(rows)}), words.json, words.output)


def _rows(file: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yields a row per strategy that has a model."""
    space = read_recorded(file)
    if space.problem is None:
        raise UsageError(f"{file}: found no problem of this tuner, allowed what tuner record-space wrote")
    start = 0
    for each, index in zip(space.feasible.spaces, space.feasible.index, strict=True):
        times_s = space.times_s[start : start + len(index)]
        start += len(index)
        model = model_of(each, space.problem, space.machine, space.threads)
        if model is not None and np.isfinite(times_s).any():
            found = ordering(model.costs(index, {}), times_s, np.random.default_rng(seed))
            yield {"file": file.name, "strategy": each.strategy, **_document(found)}


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
    committed = sorted(SPACES.glob("*.t4.json.gz"))
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", default=committed)
    parser.add_argument("--seed", type=int, default=0)
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
