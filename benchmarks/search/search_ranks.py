"""Mean and worst rank of searches over recorded spaces, from results that ``search_replay`` wrote.

    python -m benchmarks.search.search_ranks benchmarks/results/search_replay_*.json --json

A search is ranked on every space by its P, the best first; only searches that every space has are ranked.
Standard errors are deviations over redrawn scores: each P normal with its own standard error.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.results_file import add_report_options, emit, report

DRAWS = 2000

Array = npt.NDArray[np.float64]
Scores = dict[str, dict[str, tuple[float, float]]]  # by search and space: P and its standard error


def main() -> None:
    """Runs the benchmark."""
    options = _arguments()
    scores, spaces = _scores([json.loads(file.read_text()) for file in options.files])
    if len(scores) < 2:
        sys.exit(f"search_ranks: found {len(scores)} searches that all spaces have, allowed 2 or more")
    rows = ranked(scores, spaces)
    for row in rows:
        errors = {name: row[f"{name}_standard_error"] for name in ("mean_rank", "worst_rank", "mean_p")}
        print(
            f"{row['search']:36s} rank {row['mean_rank']:5.2f} +- {errors['mean_rank']:.2f}  "
            f"worst {row['worst_rank']:2d} +- {errors['worst_rank']:.1f}  "
            f"P {row['mean_p']:+.3f} +- {errors['mean_p']:.3f}  lowest {row['lowest_p']:+.3f}",
            file=sys.stderr,
        )
    settings = {"files": [file.name for file in options.files], "spaces": spaces, "draws": DRAWS}
    summary = {"mean_rank": {row["search"]: row["mean_rank"] for row in rows}}
    emit(report("search_ranks", settings, rows, summary), options.json, options.output)


def ranked(scores: Scores, spaces: list[str]) -> list[dict[str, Any]]:
    """Returns a row for each search, the best mean rank first."""
    names = list(scores)
    p = np.array([[scores[name][space][0] for space in spaces] for name in names])
    errors = np.array([[scores[name][space][1] for space in spaces] for name in names])
    drawn = p + errors * np.random.default_rng(0).standard_normal((DRAWS, *p.shape))
    ranks, redrawn = _ranks(p), _ranks(drawn)
    rows = [
        {
            "search": name,
            "mean_rank": float(ranks[place].mean()),
            "mean_rank_standard_error": float(redrawn[:, place].mean(axis=1).std()),
            "worst_rank": int(ranks[place].max()),
            "worst_rank_standard_error": float(redrawn[:, place].max(axis=1).std()),
            "mean_p": float(p[place].mean()),
            "mean_p_standard_error": float(np.sqrt((errors[place] ** 2).sum()) / len(spaces)),
            "lowest_p": float(p[place].min()),
        }
        for place, name in enumerate(names)
    ]
    return sorted(rows, key=lambda row: row["mean_rank"])


def _ranks(p: Array) -> npt.NDArray[np.intp]:
    """Returns the place of each search, 1 for the largest P: (..., searches, spaces)."""
    return np.asarray(np.argsort(np.argsort(-p, axis=-2), axis=-2) + 1)


def _scores(results: list[dict[str, Any]]) -> tuple[Scores, list[str]]:
    """Returns the scores of the searches that every space has, and the spaces.

    Later files replace earlier ones.
    """
    scores: Scores = {}
    for row in (row for result in results for row in result["rows"]):
        if row["p_standard_error"] is not None:
            scores.setdefault(row["search"], {})[row["space"]] = (row["p"], row["p_standard_error"])
    spaces = sorted({space for known in scores.values() for space in known})
    return {name: known for name, known in scores.items() if len(known) == len(spaces)}, spaces


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
