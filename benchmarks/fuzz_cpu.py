"""Checks random points of the CPU strategies: ``python -m benchmarks.fuzz_cpu --points 300 --seed 0``.

Each point is bound, compiled and verified in a child process: on aligned arrays with guard bands, and on
arrays whose neighbouring page cannot be read. Prints a table; exits with 1 when a point fails.
"""

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests.support.fuzzing.cpu_points import CpuPoint, CpuPoints, KernelKind, emulated_machine
from tests.support.fuzzing.kernel_check import KernelCheck
from tuner.core.errors import CandidateError, Failure
from tuner.core.records import Verdict
from tuner.runtime.cpu.host import describe_machine

THREADS = (1, 2)


@dataclass(frozen=True)
class FuzzOutcome:
    """The outcome of one point."""

    point: CpuPoint
    result: Verdict | Failure
    compile_s: float


def main() -> int:
    """Reads the command line, prints each failure at once and a table at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_cpu", description=__doc__)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=130, help="largest size of a dimension")
    parser.add_argument("--strategy", help="only this one")
    parser.add_argument("--emulated", action="store_true", help="AMX tiles and VNNI as vector code")
    asked = parser.parse_args()
    start = time.monotonic()
    outcomes = []
    for outcome in fuzz(asked.points, asked.seed, asked.largest, asked.strategy, asked.emulated):
        outcomes.append(outcome)
        if isinstance(outcome.result, Failure):
            print(
                f"{outcome.point.text}\n    {outcome.result.stage.value}: {outcome.result.reason}", flush=True
            )
    print_table(outcomes, time.monotonic() - start)
    return int(any(isinstance(outcome.result, Failure) for outcome in outcomes))


def fuzz(count: int, seed: int, largest: int, strategy: str | None, emulated: bool) -> Iterator[FuzzOutcome]:
    """Yields outcomes, of all kinds of problems round-robin."""
    points = CpuPoints(emulated_machine() if emulated else describe_machine())
    rng = np.random.default_rng(seed)
    checks = {threads: KernelCheck(threads, emulates=emulated) for threads in THREADS}
    kinds = [
        kind for threads in THREADS for kind in points.kinds(threads) if strategy in (None, kind.strategy)
    ]
    try:
        for kind in itertools.islice(itertools.cycle(kinds), count):
            yield check(points, checks[kind.threads], kind, rng, largest)
    finally:
        for one in checks.values():
            one.close()


def check(
    points: CpuPoints, kernels: KernelCheck, kind: KernelKind, rng: np.random.Generator, largest: int
) -> FuzzOutcome:
    """Draws one point of a kind, compiles and verifies it."""
    point = points.draw(kind, rng, largest)
    try:
        script = points.bind(point)
    except CandidateError as error:
        return FuzzOutcome(point, error.failure, 0.0)
    return FuzzOutcome(point, *kernels.check(point.problem, script, int(rng.integers(2**32))))


def print_table(outcomes: list[FuzzOutcome], seconds: float) -> None:
    """Prints counts by strategy and kind, failures by stage and reason, and the slowest compile."""
    total = Counter(_kind(outcome) for outcome in outcomes)
    good = Counter(_kind(outcome) for outcome in outcomes if isinstance(outcome.result, Verdict))
    print(f"\n{'strategy dtype layout epilogue threads':<50} {'points':>6} {'correct':>7}")
    for kind in sorted(total):
        print(f"{kind:<50} {total[kind]:>6} {good[kind]:>7}")
    print(f"{'all':<50} {total.total():>6} {good.total():>7}\n")
    failures = [outcome.result for outcome in outcomes if isinstance(outcome.result, Failure)]
    for (stage, reason), number in Counter((f.stage.value, f.reason) for f in failures).most_common():
        print(f"{number:>4} x {stage}: {reason}")
    errors = [outcome.result.max_error for outcome in outcomes if isinstance(outcome.result, Verdict)]
    print(f"largest error, in tolerances: {max(errors, default=0.0):.3g}")
    slowest = max(outcomes, key=lambda outcome: outcome.compile_s)
    print(f"slowest compile: {slowest.compile_s:.3f} s, {slowest.point.text}")
    print(f"{len(outcomes)} points in {seconds:.0f} s")


def _kind(outcome: FuzzOutcome) -> str:
    problem = outcome.point.problem
    options = (outcome.point.candidate.strategy, problem.dtype, problem.layout, problem.epilogue)
    return " ".join((*options, str(outcome.point.threads)))


if __name__ == "__main__":
    sys.exit(main())
