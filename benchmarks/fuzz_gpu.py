"""Simulates random points of all GPU strategies: ``python -m benchmarks.fuzz_gpu --points 400 --json``.

Each point is compiled to PTX, run by the simulator on all blocks in fixed and in random orders of threads,
and compared with float64; races are failures, bank conflicts of swizzled tiles as well. Needs no GPU and no
ptxas. Exits with 1 when a point fails.
"""

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.fuzzing.gpu_outcome import GpuOutcome, Schedules, check
from benchmarks.fuzzing.gpu_points import GpuKernelKind, draw, kinds
from benchmarks.gpu_check.points import gpu_strategies
from benchmarks.results_file import add_report_options, emit, report


@dataclass(frozen=True)
class Share:
    """How much of the points a strategy gets, and how each of them is run."""

    parts: int
    random_schedules: int


SHARES = {  # most to what has most knobs; warps of different roles meet in more orders
    "matmul_gpu_mma_sync": Share(5, 1),
    "matmul_gpu_wgmma": Share(2, 3),
}
OTHERS = Share(1, 1)


def main() -> int:
    """Reads the command line, prints each failure as it comes and the counts at the end."""
    words = _arguments()
    names = [entry.name for entry in gpu_strategies() if words.strategy in (None, entry.name)]
    if not names:
        sys.exit(f"--strategy: found {words.strategy!r}, allowed one of the search space's for GPUs")
    start_s, outcomes = time.monotonic(), []
    for outcome in fuzz(names, words.points, words.seed):
        outcomes.append(outcome)
        print(f"{len(outcomes)}/{words.points} {time.monotonic() - start_s:.0f} s", file=sys.stderr)
        for failure in outcome.failures:
            print(f"{_text(outcome)}\n    {failure}", file=sys.stderr)
        if words.limit_s is not None and time.monotonic() - start_s > words.limit_s:
            break
    summary = _summary(outcomes) | {"seconds": round(time.monotonic() - start_s)}
    for name, value in summary.items():
        print(f"{name:28s} {value}", file=sys.stderr)
    settings = {"points": words.points, "seed": words.seed, "strategies": names}
    emit(report("fuzz_gpu", settings, [_row(each) for each in outcomes], summary), words.json, words.output)
    return int(summary["right"] != summary["points"])


def fuzz(names: list[str], count: int, seed: int) -> Iterator[GpuOutcome]:
    """Yields outcomes, strategies by their shares and their kinds of problems in turn."""
    rng = np.random.default_rng(seed)
    drawn = {name: itertools.cycle(_shuffled(kinds(name), rng)) for name in names}
    for name in turns(names, count):
        point = draw(next(drawn[name]), rng)
        yield check(point, schedules(name, rng), int(rng.integers(2**32)))


def turns(names: list[str], count: int) -> Iterator[str]:
    """Yields strategies as often as their shares ask for."""
    shares = [name for name in names for _ in range(SHARES.get(name, OTHERS).parts)]
    yield from itertools.islice(itertools.cycle(shares), count)


def schedules(name: str, rng: np.random.Generator) -> Schedules:
    """Returns the fixed order, and random ones."""
    number = SHARES.get(name, OTHERS).random_schedules
    return (None, *(int(seed) for seed in rng.integers(2**32, size=number)))


def _shuffled(found: tuple[GpuKernelKind, ...], rng: np.random.Generator) -> list[GpuKernelKind]:
    return [found[place] for place in rng.permutation(len(found))]


def _summary(outcomes: list[GpuOutcome]) -> dict[str, Any]:
    swizzled = [each for each in outcomes if each.is_swizzled]
    padded = [each for each in outcomes if not each.is_swizzled]
    return {
        "points": len(outcomes),
        "right": sum(each.is_right for each in outcomes),
        "by_strategy": dict(Counter(each.point.candidate.strategy for each in outcomes)),
        "by_dtype": dict(Counter(each.point.problem.dtype for each in outcomes)),
        "largest_error": max((each.max_error for each in outcomes), default=0.0),
        "swizzled": len(swizzled),
        "swizzled_with_conflicts": sum(each.conflict_ratio > 1.0 for each in swizzled),
        "worst_conflict_ratio_of_others": max((each.conflict_ratio for each in padded), default=1.0),
    }


def _row(outcome: GpuOutcome) -> dict[str, Any]:
    return {
        "point": _text(outcome),
        "max_error": outcome.max_error,
        "conflict_ratio": round(outcome.conflict_ratio, 4),
        "failures": outcome.failures,
    }


def _text(outcome: GpuOutcome) -> str:
    """Returns one line to find the point again by."""
    return f"{outcome.point.problem.key} {outcome.point.chip} {outcome.point.candidate.text}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategy", help="only this one")
    parser.add_argument("--limit-s", type=float, help="begin no point after so many seconds")
    add_report_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
