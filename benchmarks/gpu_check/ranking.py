"""The GPU check, sixth part: whether cost models rank points in the order of their times.

Random points of each strategy are compiled, predicted from their knobs and from their machine code, verified
and timed. The pairs are stored. A model is accepted for a strategy on this chip where the rank correlation is
0.8 or more and 8 random points are no faster than the model's first 8 in 95 % of draws.
"""

import functools
import hashlib
import itertools
import math
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.gpu_check.checks import Check, CheckOutcome, failed, passed, skipped
from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_check.points import Case, compiled, first_built, gpu_strategies, is_allowed
from benchmarks.gpu_check.timing import Bench
from benchmarks.gpu_check.unchanged import EarlierRows
from benchmarks.search.ordering import ordering
from tests.support.gpu_point import GpuPoint, feasible_set
from tuner.core.candidate import Value
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Effort
from tuner.core.machine import gpu_machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.ptxsim.target.cycle_model import predicted
from tuner.gpu.target.event_timing import GpuTimer
from tuner.mlir.fingerprint import sources_sha256
from tuner.runtime.cpu.host import usable_processors
from tuner.search.cost_model.configurations import model_of
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.entries import StrategyEntry

SIZE = 2048
DTYPES = ("f16", "f32")  # the first that a strategy takes
POINTS = 60  # of a strategy, as far as its seconds go
LEAST_POINTS = 8
EFFORT = Effort(budget_s=0.03, min_samples=5, max_samples=30)
MODELS = ("by_knobs", "by_machine_code")
MODEL_SOURCES = (
    "search/cost_model",
    "gpu/ptxsim/target/cycle_model.py",
    "gpu/target/sass.py",
)  # below tuner/


@dataclass(frozen=True)
class PredictedTime:
    """The predictions for a point, and its time."""

    by_knobs: float  # cycles; nan: no model
    by_machine_code: float  # cycles; nan: no nvdisasm
    median_s: float
    knobs: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Drawn:
    """A random point, compiled and predicted."""

    point: GpuPoint
    program: KernelCode
    by_knobs: float
    by_machine_code: float


def checks(bed: Bed) -> tuple[Check, ...]:
    """Returns a check for each strategy that has a model; a skipped check where nothing can be timed."""
    if not bed.is_hardware:
        return (Check("clock", lambda: skipped(f"no clock on the {bed.device}")),)
    problems = [(entry.name, problem) for entry in gpu_strategies() for problem in _problem(entry, bed.chip)]
    end_s = time.monotonic() + bed.limit_s
    earlier = EarlierRows.read(bed.earlier)
    return tuple(
        Check(
            check_name(strategy, problem),
            functools.partial(
                compare_if_changed, bed, strategy, problem, end_s, len(problems) - number, earlier
            ),
            bed.limit_s,
        )
        for number, (strategy, problem) in enumerate(problems)
    )


def compare_if_changed(
    bed: Bed, strategy: str, problem: Problem, end_s: float, strategies: int, earlier: EarlierRows
) -> CheckOutcome:
    """Times points unless strategy and cost models are those that were compared before. Raises TunerError."""
    _, program = first_built(Case(strategy, problem), bed.target)
    sha256 = hashlib.sha256(f"{program.text} {sources_sha256(MODEL_SOURCES)}".encode()).hexdigest()
    name = check_name(strategy, problem)
    return earlier.or_ask("ranking", name, sha256, lambda: compare(bed, strategy, problem, end_s, strategies))


def check_name(strategy: str, problem: Problem) -> str:
    """Returns the name of a strategy's check."""
    return f"{strategy} {problem.key}"


def compare(bed: Bed, strategy: str, problem: Problem, end_s: float, strategies: int) -> CheckOutcome:
    """Times points for a share of the remaining seconds. Raises TunerError."""
    stop_s = time.monotonic() + (end_s - time.monotonic()) / strategies
    gpu, rng = bed.gpu(), np.random.default_rng(0)
    pairs: list[PredictedTime] = []
    bench: Bench | None = None
    with closing(GpuTimer(gpu.device, gpu.cache_bytes)) as timer:
        for drawn in drawn_points(bed, strategy, problem):
            if len(pairs) == POINTS or time.monotonic() > stop_s:
                break
            bench = bench or Bench(gpu, problem, drawn.program)
            work = bench.of(drawn.program)
            median_s = timer.measure(work, EFFORT, rng).median_s
            pairs.append(
                PredictedTime(drawn.by_knobs, drawn.by_machine_code, median_s, drawn.point.candidate.choices)
            )
    return compared_pairs(pairs)


def drawn_points(bed: Bed, strategy: str, problem: Problem) -> Iterator[Drawn]:
    """Yields random points that can be launched, compiled and predicted by other processes."""
    allowed, rng = feasible_set(problem, strategy, bed.chip), np.random.default_rng(0)
    rows = [int(row) for row in rng.permutation(allowed.rows)[: 2 * POINTS]]
    points = [GpuPoint(problem, allowed.candidate(row), bed.chip) for row in rows]
    known = [_by_knobs(allowed, row, problem, bed) for row in rows]
    asked = [_processes().submit(_drawn, bed, *each) for each in zip(points, known, strict=True)]
    try:
        yield from (drawn for each in asked if (drawn := each.result()) is not None)
    finally:
        for each in asked:
            each.cancel()


@functools.cache
def _processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max(1, usable_processors().allowed - 1), multiprocessing.get_context("spawn"))


def _drawn(bed: Bed, point: GpuPoint, by_knobs: float) -> Drawn | None:
    try:
        program = compiled(point, bed.target)
    except CandidateError:
        return None
    found = predicted(point.problem, program)
    return Drawn(point, program, by_knobs, math.nan if found is None else found.cycles)


def compared_pairs(pairs: Iterable[PredictedTime]) -> CheckOutcome:
    """Evaluates each model by the pairs; too few pairs are a failure, an inaccurate model is not."""
    points = list(pairs)
    rows = [(pair.by_knobs, pair.by_machine_code, pair.median_s) for pair in points]
    if len(rows) < LEAST_POINTS:
        return failed(f"found {len(rows)} points with times, allowed {LEAST_POINTS} or more", pairs=rows)
    columns = np.array(rows).T
    facts: dict[str, Any] = {"pairs": rows, "knobs": [dict(pair.knobs) for pair in points]}
    options = []
    for name, predictions in zip(MODELS, columns, strict=False):
        if not np.isfinite(predictions).any():
            options.append(f"{name}: none")
            continue
        found = ordering(predictions, columns[-1], np.random.default_rng(0))
        facts[name] = {
            "rank_correlation": found.rank_correlation,
            "regret": dict(found.regret),
            "beats_random": found.beats_random,
            "is_accepted": found.is_accepted,
        }
        accepted = "accepted" if found.is_accepted else "not accepted"
        regret = ", ".join(f"{share:.0%} after {first}" for first, share in found.regret)
        options.append(f"{name}: rank correlation {found.rank_correlation:.2f}, regret {regret}, {accepted}")
    return passed(f"{len(rows)} points; {'; '.join(options)}", **facts)


def _problem(entry: StrategyEntry, chip: str) -> Iterator[Problem]:
    """Yields the problem on which a strategy is evaluated; none where it takes neither type."""
    problems = (Matmul(SIZE, SIZE, SIZE, dtype) for dtype in DTYPES if dtype in entry.dtypes)
    yield from itertools.islice((each for each in problems if is_allowed(entry, each, chip)), 1)


def _by_knobs(allowed: FeasibleSet, row: int, problem: Problem, bed: Bed) -> float:
    machine = gpu_machine(bed.device, chip_of(bed.chip), bed.chip)
    model = model_of(allowed.spaces[0], problem, machine, 1)
    return math.nan if model is None else float(model.costs(allowed.index[0][row : row + 1], {})[0])
