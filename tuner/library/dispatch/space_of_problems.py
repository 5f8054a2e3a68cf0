"""The strategies of a search space file for any problem: projections, model costs, scripts."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tuner.analysis.many_shapes.choice import AskedProblem
from tuner.core.candidate import Candidate
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.scripts.chosen import choose, spaces
from tuner.scripts.strategy import Binder, load_strategy
from tuner.space.file.entries import StrategyEntry, Variables
from tuner.space.file.reading import SpaceFile, load_space_file
from tuner.space.file.shipped import default_space_file
from tuner.space.search_space import SearchSpace
from tuner.tuning.many_shapes.projected_pool import PoolProblem, projected_pool


@dataclass(frozen=True)
class ProjectedColumns:
    """What configurations become on one problem, with what the cost model expects of each."""

    problem: Problem
    candidates: tuple[Candidate | None, ...]  # per configuration; None: it cannot do the problem
    costs: tuple[float, ...]  # per configuration; inf where there is no model, or nothing to run

    @property
    def asked(self) -> AskedProblem:
        """Returns the problem as the choice among the columns of a matrix takes it."""
        return AskedProblem(self.problem, tuple(each is not None for each in self.candidates), self.costs)


@dataclass(frozen=True)
class SpaceOfProblems:
    """A search space file on one machine with a number of threads, for problems of any size."""

    space_file: SpaceFile
    machine: Machine
    threads: int
    strategies: tuple[ChosenStrategy, ...]

    @classmethod
    def shipped(cls, machine: Machine, threads: int) -> "SpaceOfProblems":
        """Returns that of the shipped search space file."""
        space_file = load_space_file(default_space_file())
        return cls(space_file, machine, threads, choose((), space_file))

    @cached_property
    def first(self) -> tuple[Candidate, ...]:
        """Returns the configurations that the file lists to begin with, in its order."""
        return tuple(point for entry in self.space_file.strategies for point in entry.first)

    def projected(self, problem: Problem, columns: Iterable[Candidate]) -> ProjectedColumns:
        """Returns what configurations become on a problem, and their model costs.

        Raises UsageError where no strategy of the file supports the problem.
        """
        of = PoolProblem(problem, 1, self.spaces(problem))
        pool = projected_pool((of,), tuple(columns), self.machine, self.threads)
        return ProjectedColumns(problem, pool.candidates[0], pool.costs[0])

    def script(self, problem: Problem, candidate: Candidate) -> Script:
        """Returns the script of a configuration that is allowed for the problem. Raises CandidateError."""
        strategies = tuple(load_strategy(one.name, one.path) for one in self.strategies)
        return Binder(strategies, problem, self._variables(problem), self.threads).bind(candidate)

    def sha256(self, strategies: Iterable[str]) -> str:
        """Returns a hash of the knobs, constraints and projections of strategies.

        With another hash, the same values may stand for other code, or become others on another problem.
        Comments, preferences and first points of the file do not count. Raises UsageError for an unknown
        strategy.
        """
        meanings = [_meaning(self.space_file.strategy(name)) for name in sorted({*strategies})]
        return hashlib.sha256(json.dumps(meanings, default=str).encode()).hexdigest()

    def spaces(self, problem: Problem) -> tuple[SearchSpace, ...]:
        """Returns the search spaces of the strategies that support a problem.

        Raises UsageError where none does.
        """
        variables = self._variables(problem)
        return spaces(self.strategies, self.space_file, problem, self.machine.isa, variables)

    def _variables(self, problem: Problem) -> Variables:
        return variables_of(problem, self.machine, self.threads)


def _meaning(entry: StrategyEntry) -> tuple[object, ...]:
    knobs = [(knob.name, knob.choices) for knob in entry.knobs]
    constraints = [constraint.full_text for constraint in entry.constraints]
    return (entry.name, knobs, constraints, entry.projection)
