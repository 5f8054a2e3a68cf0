"""Simulates random points of all GPU strategies: ``python -m benchmarks.fuzz_gpu --points 400 --json``.

Each point is compiled to PTX, run by the simulator on all blocks in fixed and in random orders of threads,
and compared with float64; races are failures, and so are bank conflicts of swizzled tiles. Needs no GPU and
no ptxas. Exits with 1 when a point fails. An existing file of ``--output`` is continued: its points are not
run again, so that a long fuzz can be many short commands with the same options. Several files are merged by
``python -m benchmarks.fuzz_gpu one.json other.json --output all.json``.
"""

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu_check.points import gpu_strategies
from benchmarks.results_file import add_report_options, emit, report
from tests.support.fuzzing.gpu_outcome import GpuOutcome, Schedules, check
from tests.support.fuzzing.gpu_points import GpuKernelKind, Knobs, draw, kinds
from tuner.core.problem import BATCH_MATMUL


@dataclass(frozen=True)
class Asked:
    """Which points the fuzzer draws."""

    strategies: tuple[str, ...]
    seed: int
    knobs: Knobs  # that all points have
    is_preferred: bool  # only points that break no preference

    @property
    def settings(self) -> dict[str, Any]:
        """Returns the settings for the results file."""
        names, knobs = list(self.strategies), dict(self.knobs)
        return {"seed": self.seed, "strategies": names, "knobs": knobs, "preferred": self.is_preferred}


@dataclass(frozen=True)
class Share:
    """The share of the points that a strategy gets, and its number of schedules."""

    parts: int
    random_schedules: int  # in addition to the fixed one
    randomized: float  # share of its points that run in random schedules too: these take most of the time


SHARES = {  # most points for most knobs; most schedules where warps of different roles meet
    "matmul_gpu_mma_sync": Share(5, 1, 0.25),
    "matmul_gpu_wgmma": Share(2, 3, 1.0),
}
OTHERS = Share(1, 1, 0.25)
COUNTED = ("strategy", "dtype", "layout", "epilogue")  # of rows, in the summary


def main() -> int:
    """Reads the command line, prints each failure at once and the counts at the end."""
    options = _arguments()
    names = [entry.name for entry in gpu_strategies() if options.strategy in (None, entry.name)]
    if not names:
        sys.exit(f"--strategy: found {options.strategy!r}, allowed one of the search space's for GPUs")
    if options.files:
        return _finish(*_together(options.files), options)
    asked = Asked(tuple(names), options.seed, tuple(options.knob), options.preferred)
    rows, spent_s = _earlier(options.output, asked.settings)
    start_s = time.monotonic()
    for outcome in fuzz(asked, options.points, len(rows)):
        rows.append(_row(outcome))
        print(f"{len(rows)}/{options.points} {time.monotonic() - start_s:.0f} s", file=sys.stderr)
        for failure in outcome.failures:
            print(f"{_text(outcome)}\n    {failure}", file=sys.stderr)
        if options.limit_s is not None and time.monotonic() - start_s > options.limit_s:
            break
    return _finish(asked.settings, rows, spent_s + round(time.monotonic() - start_s), options)


def _together(files: list[Path]) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """Returns the settings, the rows and the seconds of several documents."""
    documents = [json.loads(file.read_text()) for file in files]
    rows = [row for each in documents for row in each["rows"]]
    spent_s = sum(each["summary"]["seconds"] for each in documents)
    return {"fuzzes": [each["settings"] for each in documents]}, rows, spent_s


def _finish(
    settings: dict[str, Any], rows: list[dict[str, Any]], spent_s: int, options: argparse.Namespace
) -> int:
    """Prints the counts, writes the document, and returns the exit code."""
    summary = _summary(rows) | {"seconds": spent_s}
    for name, value in summary.items():
        print(f"{name:28s} {value}", file=sys.stderr)
    emit(report("fuzz_gpu", settings, rows, summary), options.json, options.output)
    return int(summary["right"] != summary["points"])


def fuzz(asked: Asked, count: int, first: int = 0) -> Iterator[GpuOutcome]:
    """Yields outcomes from number ``first`` on: strategies by their shares, kinds of problems round-robin."""
    rng = np.random.default_rng(asked.seed)
    drawn = {name: itertools.cycle(_shuffled(kinds(name), rng)) for name in asked.strategies}
    for number, name in enumerate(turns(asked.strategies, count)):
        kind, rng = next(drawn[name]), np.random.default_rng((asked.seed, number))
        if number >= first:
            try:
                point = draw(kind, rng, asked.knobs, is_preferred=asked.is_preferred)
            except LookupError as error:
                sys.exit(f"--knob: {error.args[0]}")
            yield check(point, schedules(name, rng), int(rng.integers(2**32)))


def turns(names: tuple[str, ...], count: int) -> Iterator[str]:
    """Yields ``count`` strategies, round-robin in proportion to their shares."""
    shares = [name for name in names for _ in range(SHARES.get(name, OTHERS).parts)]
    yield from itertools.islice(itertools.cycle(shares), count)


def schedules(name: str, rng: np.random.Generator) -> Schedules:
    """Returns the fixed order of threads, and random orders for some points."""
    share = SHARES.get(name, OTHERS)
    number = share.random_schedules if rng.random() < share.randomized else 0
    return (None, *(int(seed) for seed in rng.integers(2**32, size=number)))


def _shuffled(found: tuple[GpuKernelKind, ...], rng: np.random.Generator) -> list[GpuKernelKind]:
    return [found[place] for place in rng.permutation(len(found))]


def _earlier(output: Path | None, settings: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Returns the rows of an existing results file, and the seconds that they took."""
    if output is None or not output.exists():
        return [], 0
    document = json.loads(output.read_text())
    if document["settings"] != settings:
        sys.exit(f"--output: found a fuzz of {document['settings']}, allowed one of {settings}")
    return document["rows"], document["summary"]["seconds"]


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    conflicts = {
        layout: [row["conflict_ratio"] for row in rows if row["shared"] == layout]
        for layout in ("swizzle", "pad")
    }
    of_others = [row for row in rows if row["shared"] not in conflicts]
    return {
        "points": len(rows),
        "right": sum(not row["failures"] for row in rows),
        **{f"by_{name}": dict(Counter(row[name] for row in rows)) for name in COUNTED},
        "batches": sum(row["point"].startswith(BATCH_MATMUL) for row in rows),
        "clusters_of_two": sum(
            "cluster=2x1" in row["point"] or "cluster=1x2" in row["point"] for row in rows
        ),
        "largest_error": max((row["max_error"] for row in rows), default=0.0),
        "swizzled": len(conflicts["swizzle"]),
        "swizzled_with_conflicts": sum(ratio > 1.0 for ratio in conflicts["swizzle"]),
        "worst_conflict_ratio_of_padded": max(conflicts["pad"], default=1.0),
        "worst_conflict_ratio_of_others": max((row["conflict_ratio"] for row in of_others), default=1.0),
    }


def _row(outcome: GpuOutcome) -> dict[str, Any]:
    problem, candidate = outcome.point.problem, outcome.point.candidate
    return {
        "point": _text(outcome),
        "strategy": candidate.strategy,
        "dtype": problem.dtype,
        "layout": problem.layout,
        "epilogue": problem.epilogue,
        "shared": dict(candidate.choices).get("shared", ""),
        "max_error": outcome.max_error,
        "conflict_ratio": round(outcome.conflict_ratio, 4),
        "failures": list(outcome.failures),
    }


def _text(outcome: GpuOutcome) -> str:
    """Returns one line that identifies the point."""
    return f"{outcome.point.problem.key} {outcome.point.chip} {outcome.point.candidate.text}"


def _knob(given: str) -> tuple[str, str]:
    name, equals, text = given.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"found {given!r}, allowed NAME=TEXT such as shared=swizzle")
    return name, text


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help="documents to put together; nothing is run then")
    parser.add_argument("--points", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategy", help="only this one")
    parser.add_argument("--knob", type=_knob, action="append", default=[], help="NAME=TEXT that points have")
    parser.add_argument("--preferred", action="store_true", help="only points that break no preference")
    parser.add_argument("--limit-s", type=float, help="begin no point after so many seconds")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
