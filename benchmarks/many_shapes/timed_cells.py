"""Times each cell of a pool in two separate rounds, and in a third where the two differ.

In a round all configurations of a problem are timed interleaved, and what counts is each one's time
relative to the others in the same moment: a machine that changes its speed for seconds changes them alike.
Code is compiled once, by two child processes that are idle while this process times.
"""

import os
import statistics
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

from tuner.analysis.scheduler import ColumnPool
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Refusal
from tuner.core.interfaces import Artifact, Effort, Script
from tuner.core.problem import Problem
from tuner.runtime.cpu.host import describe_machine, processors
from tuner.targets.cpu.compiler import CpuCompiler
from tuner.targets.cpu.evaluator import CpuEvaluator
from tuner.tuning.rule import ProblemSpaces

EFFORT = Effort(budget_s=0.04, min_samples=5, max_samples=40)  # of one configuration in one round
DIFFERENCE = 0.07  # relative, of two rounds: above it a third decides
DIFFERING = 0.1  # share of the configurations that may differ without a third round
SEED = 0


@dataclass(frozen=True)
class Cell:
    """One configuration on one problem: the median seconds of each round, and which code it is."""

    rounds_s: tuple[float, ...]  # at the speed that the machine had in the quietest round; (): it failed
    code: str  # hash; cells of a problem with the same code have the same rounds
    failure: str = ""  # one line; "": it was timed

    @property
    def time_s(self) -> float | None:
        """Returns the median over the rounds; None where it failed."""
        return statistics.median(self.rounds_s) if self.rounds_s else None


Cells = tuple[tuple[Cell | None, ...], ...]  # [problem][column]; None: the configuration does not apply


def timed_cells(pool: ColumnPool, batch: int, threads: int = 1) -> Cells:
    """Returns the cells of a pool, timed in batches of ``batch`` problems: a round is of a whole batch."""
    rows: list[tuple[Cell | None, ...]] = []
    with ProcessPoolExecutor(
        2, get_context("spawn"), _use_all_processors, (os.sched_getaffinity(0),)
    ) as compilers:
        evaluator = CpuEvaluator(threads, processors(threads))
        for first in range(0, len(pool.problems), batch):
            part = range(first, min(first + batch, len(pool.problems)))
            rows += _timed_batch(pool, part, partial(_compiled, threads), compilers, evaluator)
            print(f"timed {len(rows)} of {len(pool.problems)} problems", file=sys.stderr, flush=True)
    return tuple(rows)


Compile = Callable[[Problem, Candidate], Artifact | Refusal]


def _timed_batch(
    pool: ColumnPool, part: range, compile_: Compile, compilers: ProcessPoolExecutor, evaluator: CpuEvaluator
) -> list[tuple[Cell | None, ...]]:
    kernels = {place: _kernels(pool, place, compile_, compilers, evaluator) for place in part}
    for _ in range(2):
        for place in part:
            _time(pool.problems[place], kernels[place].values(), evaluator)
    for place in part:
        working = _working(kernels[place].values())
        if sum(_differ(each) for each in working) > DIFFERING * len(working):
            _time(pool.problems[place], working, evaluator)
    return [_row(pool, place, kernels[place]) for place in part]


@dataclass(eq=False)
class _Kernel:
    """Loaded code of one or several configurations of a problem, with what was measured so far."""

    code: str
    loaded: object
    relative: list[float]  # per round: time / geometric mean of all configurations of the problem
    level_s: list[float]  # per round: that mean
    failure: str = ""

    @property
    def rounds_s(self) -> tuple[float, ...]:
        """Returns the times of all rounds, at the speed of the quietest."""
        return tuple(each * min(self.level_s) for each in self.relative)


def _kernels(
    pool: ColumnPool, place: int, compile_: Compile, compilers: ProcessPoolExecutor, evaluator: CpuEvaluator
) -> dict[Candidate, _Kernel]:
    """Returns the verified kernels of a problem by candidate; equal code is one object."""
    problem = pool.problems[place]
    candidates = [*dict.fromkeys(each for each in pool.candidates[place] if each is not None)]
    compiled = compilers.map(compile_, [problem] * len(candidates), candidates)
    by_code: dict[str, _Kernel] = {}
    found: dict[Candidate, _Kernel] = {}
    for candidate, artifact in zip(candidates, compiled, strict=True):
        if isinstance(artifact, Refusal):
            found[candidate] = _Kernel("", None, [], [], artifact.text)
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
        return _Kernel(artifact.sha256, None, [], [], f"{error.stage.value}: {error.reason}")
    return _Kernel(artifact.sha256, loaded, [], [])


def _working(kernels: Iterable[_Kernel]) -> list[_Kernel]:
    """Returns the kernels without a failure, each once."""
    return [each for each in dict.fromkeys(kernels) if not each.failure]


def _time(problem: Problem, kernels: Iterable[_Kernel], evaluator: CpuEvaluator) -> None:
    """Adds a round to each kernel that works; one that fails is timed no more."""
    working = _working(kernels)
    try:
        samples = _interleaved(problem, working, evaluator)
    except CandidateError:
        for kernel in working:
            _find_failure(problem, kernel, evaluator)
        working = _working(working)
        samples = _interleaved(problem, working, evaluator)
    levels = np.exp(np.log(samples).mean(axis=0))
    for kernel, own in zip(working, samples, strict=True):
        kernel.relative.append(float(np.median(own / levels)))
        kernel.level_s.append(float(np.median(levels)))


def _interleaved(
    problem: Problem, kernels: list[_Kernel], evaluator: CpuEvaluator
) -> npt.NDArray[np.float64]:
    """Returns the samples of kernels [kernel, moment] in seconds per call; raises CandidateError for any."""
    loaded = tuple(each.loaded for each in kernels)
    measured = evaluator.measure_together(problem, loaded, EFFORT, np.random.default_rng(SEED))
    return np.array([each.samples_s for each in measured], np.float64)


def _find_failure(problem: Problem, kernel: _Kernel, evaluator: CpuEvaluator) -> None:
    """Times a kernel alone, and notes how it fails if it does."""
    try:
        evaluator.measure(problem, kernel.loaded, EFFORT, np.random.default_rng(SEED))
    except CandidateError as error:
        kernel.failure = f"{error.stage.value}: {error.reason}"


def _differ(kernel: _Kernel) -> bool:
    return max(kernel.relative) > (1 + DIFFERENCE) * min(kernel.relative)


def _row(pool: ColumnPool, place: int, kernels: dict[Candidate, _Kernel]) -> tuple[Cell | None, ...]:
    return tuple(None if each is None else _cell(kernels[each]) for each in pool.candidates[place])


def _cell(kernel: _Kernel) -> Cell:
    return Cell(() if kernel.failure else kernel.rounds_s, kernel.code, kernel.failure)


def _use_all_processors(allowed: set[int]) -> None:
    """Lets a child run on all processors: this process pins itself to one."""
    os.sched_setaffinity(0, allowed)


def _compiled(threads: int, problem: Problem, candidate: Candidate) -> Artifact | Refusal:
    """Compiles a configuration, in a child; returns the artifact, or in one line why there is none."""
    space, compiler = _parts(threads)
    try:
        return compiler.compile(problem, Script.of(space.script(problem, candidate).text))
    except CandidateError as error:
        return Refusal(f"{error.stage.value}: {error.reason}")


@cache
def _parts(threads: int) -> tuple[ProblemSpaces, CpuCompiler]:
    return ProblemSpaces.shipped(describe_machine(), threads), CpuCompiler()
