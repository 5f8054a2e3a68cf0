"""Checks random points of the CPU strategies: ``python -m benchmarks.fuzz_cpu --points 300 --seed 0``.

Each point is bound, compiled and verified in a child process: on aligned arrays with guard bands, and on
arrays whose neighbouring page cannot be read. Points are of matmuls, and of fusions of each kind: products
with epilogues, convolutions, attentions, rows, elements, quantized weights. Prints a table; exits with 1 when
a point fails.
"""

import argparse
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from tests.support.fuzzing.cpu_points import CpuPoint, CpuPoints, emulated_machine
from tests.support.fuzzing.fusion_points import FusionPoints
from tests.support.fuzzing.kernel_check import KernelCheck
from tuner.core.errors import CandidateError, Failure, UsageError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem_classes import TextProblem
from tuner.core.records import Verdict
from tuner.runtime.cpu.host import describe_machine

THREADS = (1, 2)


@dataclass(frozen=True)
class FuzzOutcome:
    """The outcome of one point."""

    point: CpuPoint
    result: Verdict | Failure
    compile_s: float


@dataclass(frozen=True)
class PointKind:
    """Points of one strategy on some threads: of matmuls of a type, or of fusions of a type.

    ``draw`` takes a generator and the largest size of a dimension; ``bind`` returns a point's script.
    """

    strategy: str
    threads: int
    draw: Callable[[Generator, int], CpuPoint]
    bind: Callable[[CpuPoint], Script]


def main() -> int:
    """Reads the command line, prints each failure at once and a table at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_cpu", description=__doc__)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=130, help="largest size of a dimension")
    parser.add_argument("--strategy", help="only this one")
    parser.add_argument("--emulated", action="store_true", help="AMX tiles and VNNI as vector code")
    asked = parser.parse_args()
    machine = emulated_machine() if asked.emulated else describe_machine()
    try:
        kinds = kinds_of(machine, asked.strategy)
    except UsageError as error:
        parser.error(str(error))
    start = time.monotonic()
    outcomes = []
    for outcome in fuzz(kinds, asked.points, asked.seed, asked.largest, asked.emulated):
        outcomes.append(outcome)
        if isinstance(outcome.result, Failure):
            print(
                f"{outcome.point.text}\n    {outcome.result.stage.value}: {outcome.result.reason}", flush=True
            )
    print_table(outcomes, time.monotonic() - start)
    return int(any(isinstance(outcome.result, Failure) for outcome in outcomes))


def kinds_of(machine: Machine, strategy: str | None) -> list[PointKind]:
    """Returns the kinds of points of matmuls and of other fusions that are drawn on ``machine``.

    ``strategy``: only its kinds; None: all. Raises UsageError where it has none.
    """
    fusions = FusionPoints(machine)
    matmuls = CpuPoints(machine)
    of_fusions = [
        PointKind(kind.strategy, threads, partial(fusions.draw, kind), fusions.bind)
        for threads in THREADS
        for kind in fusions.kinds(threads)
    ]
    of_matmuls = [
        PointKind(kind.strategy, threads, partial(matmuls.draw, kind), matmuls.bind)
        for threads in THREADS
        for kind in matmuls.kinds(threads)
    ]
    kinds = [*of_fusions, *of_matmuls]  # in this order: a short run has some of each strategy
    asked = [kind for kind in kinds if strategy in (None, kind.strategy)]
    if not asked:
        names = ", ".join(dict.fromkeys(kind.strategy for kind in kinds))
        raise UsageError(f"strategy: found {strategy}, allowed here: {names}; --emulated has more")
    return asked


def fuzz(
    kinds: Sequence[PointKind], count: int, seed: int, largest: int, emulated: bool
) -> Iterator[FuzzOutcome]:
    """Yields the outcomes of ``count`` points, of all kinds round-robin.

    A kind without a point that is allowed on this machine is named once, and left out.
    """
    rng = np.random.default_rng(seed)
    checks = {threads: KernelCheck(threads, emulates=emulated) for threads in THREADS}
    left = deque(kinds)
    try:
        while count and left:
            kind = left.popleft()
            try:
                point = kind.draw(rng, largest)
            except LookupError as error:
                print(f"not drawn: {error}", flush=True)
                continue
            yield check(point, kind, checks[kind.threads], rng)
            left.append(kind)
            count -= 1
    finally:
        for one in checks.values():
            one.close()


def check(point: CpuPoint, kind: PointKind, kernels: KernelCheck, rng: Generator) -> FuzzOutcome:
    """Compiles and verifies one point."""
    try:
        script = kind.bind(point)
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
    if not outcomes:
        print("no points")
        return
    slowest = max(outcomes, key=lambda outcome: outcome.compile_s)
    print(f"slowest compile: {slowest.compile_s:.3f} s, {slowest.point.text}")
    print(f"{len(outcomes)} points in {seconds:.0f} s")


def _kind(outcome: FuzzOutcome) -> str:
    problem = outcome.point.problem
    options = [outcome.point.candidate.strategy, problem.dtype]
    if not isinstance(problem, TextProblem):
        options += [problem.layout, problem.epilogue]
    return " ".join((*options, str(outcome.point.threads)))


if __name__ == "__main__":
    sys.exit(main())
