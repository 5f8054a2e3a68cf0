"""The problems of the benchmark, and the configurations that a campaign would try on them."""

from collections import Counter
from dataclasses import dataclass

from tuner.analysis.scheduler import ColumnPool
from tuner.core.candidate import CPU, Candidate, TargetName
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.runs import RunSettings
from tuner.space.scripts.choice import choose
from tuner.targets import run_plan
from tuner.tuning.pool import PoolProblem, projected_pool
from tuner.tuning.rule import ProblemSpaces

# (n outputs, k inputs): Qwen2-0.5B (hidden 896, 2 heads of keys and values, 4864) and a ViT-S (hidden 384)
WEIGHTS = (
    (896, 896),
    (128, 896),
    (4864, 896),
    (896, 4864),
    (1152, 384),
    (384, 384),
    (1536, 384),
    (384, 1536),
)
TOKENS = (12, 24, 48, 96, 192)  # m: one held out leaves its neighbours two octaves apart
SPLIT = ("split", "none")


@dataclass(frozen=True)
class Sizes:
    """How much of the benchmark is run."""

    weights: tuple[tuple[int, int], ...]
    tokens: tuple[int, ...]
    columns: int

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Returns the problems, those of one weight next to one another."""
        return tuple(Matmul(m, n, k) for n, k in self.weights for m in self.tokens)


def pool_of(sizes: Sizes, machine: Machine) -> ColumnPool:
    """Returns the pool: what the space file and the cost model would try first on most of the problems."""
    space = ProblemSpaces.shipped(machine, threads=1)
    plans = [run_plan.plan(_settings(problem, space), machine) for problem in sizes.problems]
    listed = Counter(
        candidate
        for plan in plans
        for row in {*plan.first, *plan.seeds({})}
        if SPLIT in (candidate := plan.feasible.candidate(row)).choices
    )
    order = {candidate: place for place, candidate in enumerate(listed)}
    ranked = sorted(listed, key=lambda each: (-listed[each], order[each]))
    columns = _with_universal(tuple(ranked[: sizes.columns]), space)
    problems = tuple(
        PoolProblem(problem, 1, plan.feasible.spaces)
        for problem, plan in zip(sizes.problems, plans, strict=True)
    )
    return projected_pool(problems, columns, machine, threads=1)


def _with_universal(columns: tuple[Candidate, ...], space: ProblemSpaces) -> tuple[Candidate, ...]:
    """Returns the columns with one that can do any problem, in place of the last where there is none."""
    smallest = Matmul(1, 1, 1)
    if any(space.projected(smallest, columns).new_problem.applies):
        return columns
    able = zip(space.first, space.projected(smallest, space.first).new_problem.applies, strict=True)
    return (*columns[:-1], next(each for each, applies in able if applies))


def _settings(problem: Problem, space: ProblemSpaces) -> RunSettings:
    return RunSettings(
        problem=problem,
        target=TargetName.parse(CPU),
        threads=1,
        strategies=choose((), space.space_file),
        space_yaml=space.space_file.text,
        sampler="exhaustive",
        seed=0,
        trials=None,
        budget_s=None,
        workers=1,
    )
