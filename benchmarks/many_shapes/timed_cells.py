"""Times each cell of a pool in two separate rounds, and in a third where the two differ.

Code is compiled once, by two child processes that are idle while this process times.
"""

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

import numpy as np

from tuner.analysis.many_shapes.column_pool import ColumnPool
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError
from tuner.core.problem import Problem
from tuner.core.target import Artifact, Effort, Script
from tuner.library.dispatch.space_of_problems import SpaceOfProblems
from tuner.runtime.cpu.describe_host import describe_machine, processors
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator

EFFORT = Effort(budget_s=0.04, min_samples=5, max_samples=40)  # of one round
DIFFERENCE = 0.07  # relative, of two rounds: above it a third decides
SEED = 0


@dataclass(frozen=True)
class Cell:
    """One configuration on one problem: the median seconds of each round, and which code it is."""

    rounds_s: tuple[float, ...]  # (): it failed
    code: str  # hash; cells of a problem with the same code have the same rounds
    failure: str = ""  # one line; "": it was timed

    @property
    def least_s(self) -> float | None:
        """Returns the least median of all rounds; None where it failed."""
        return min(self.rounds_s, default=None)


Cells = tuple[tuple[Cell | None, ...], ...]  # [problem][column]; None: the configuration does not apply


def timed_cells(pool: ColumnPool, batch: int) -> Cells:
    """Returns the cells of a pool, timed in batches of ``batch`` problems: a round is of a whole batch."""
    rows: list[tuple[Cell | None, ...]] = []
    with ProcessPoolExecutor(
        2, get_context("spawn"), _use_all_processors, (os.sched_getaffinity(0),)
    ) as compilers:
        evaluator = CpuEvaluator(1, processors(1))
        for first in range(0, len(pool.problems), batch):
            part = range(first, min(first + batch, len(pool.problems)))
            rows += _timed_batch(pool, part, compilers, evaluator)
            print(f"timed {len(rows)} of {len(pool.problems)} problems", file=sys.stderr, flush=True)
    return tuple(rows)


def _timed_batch(
    pool: ColumnPool, part: range, compilers: ProcessPoolExecutor, evaluator: CpuEvaluator
) -> list[tuple[Cell | None, ...]]:
    kernels = {place: _kernels(pool, place, compilers, evaluator) for place in part}
    for _ in range(2):
        for place in part:
            _time(pool.problems[place], kernels[place].values(), evaluator)
    for place in part:
        again = [each for each in kernels[place].values() if _differ(each.rounds_s)]
        _time(pool.problems[place], again, evaluator)
    return [_row(pool, place, kernels[place]) for place in part]


@dataclass(eq=False)
class _Kernel:
    """Loaded code of one or several configurations of a problem, with what was measured so far."""

    code: str
    loaded: object
    rounds_s: list[float]
    failure: str = ""


def _kernels(
    pool: ColumnPool, place: int, compilers: ProcessPoolExecutor, evaluator: CpuEvaluator
) -> dict[Candidate, _Kernel]:
    """Returns the verified kernels of a problem by candidate; equal code is one object."""
    problem = pool.problems[place]
    candidates = [*dict.fromkeys(each for each in pool.candidates[place] if each is not None)]
    compiled = compilers.map(_compiled, [problem] * len(candidates), candidates)
    by_code: dict[str, _Kernel] = {}
    found: dict[Candidate, _Kernel] = {}
    for candidate, artifact in zip(candidates, compiled, strict=True):
        if isinstance(artifact, str):
            found[candidate] = _Kernel("", None, [], artifact)
            continue
        if artifact.sha256 not in by_code:
            by_code[artifact.sha256] = _loaded(problem, artifact, evaluator)
        found[candidate] = by_code[artifact.sha256]
    return found


def _loaded(problem: Problem, artifact: Artifact, evaluator: CpuEvaluator) -> _Kernel:
    try:
        loaded = evaluator.load(problem, artifact)
        evaluator.verify(problem, loaded, np.random.default_rng(SEED))
    except CandidateError as error:
        return _Kernel(artifact.sha256, None, [], f"{error.stage.value}: {error.reason}")
    return _Kernel(artifact.sha256, loaded, [])


def _time(problem: Problem, kernels: Iterable[_Kernel], evaluator: CpuEvaluator) -> None:
    """Adds a round to each kernel that works."""
    for kernel in dict.fromkeys(kernels):
        if kernel.failure:
            continue
        try:
            measured = evaluator.measure(problem, kernel.loaded, EFFORT, np.random.default_rng(SEED))
            kernel.rounds_s.append(measured.median_s)
        except CandidateError as error:
            kernel.failure = f"{error.stage.value}: {error.reason}"


def _differ(rounds_s: list[float]) -> bool:
    return len(rounds_s) == 2 and max(rounds_s) > (1 + DIFFERENCE) * min(rounds_s)


def _row(pool: ColumnPool, place: int, kernels: dict[Candidate, _Kernel]) -> tuple[Cell | None, ...]:
    return tuple(None if each is None else _cell(kernels[each]) for each in pool.candidates[place])


def _cell(kernel: _Kernel) -> Cell:
    return Cell(() if kernel.failure else tuple(kernel.rounds_s), kernel.code, kernel.failure)


def _use_all_processors(allowed: set[int]) -> None:
    """Lets a child run on all processors: this process pins itself to one."""
    os.sched_setaffinity(0, allowed)


def _compiled(problem: Problem, candidate: Candidate) -> Artifact | str:
    """Compiles a configuration, in a child; returns the artifact, or in one line why there is none."""
    space, compiler = _parts()
    try:
        return compiler.compile(problem, Script.of(space.script(problem, candidate).text))
    except CandidateError as error:
        return f"{error.stage.value}: {error.reason}"


@cache
def _parts() -> tuple[SpaceOfProblems, CpuCompiler]:
    return SpaceOfProblems.shipped(describe_machine(), threads=1), CpuCompiler()
