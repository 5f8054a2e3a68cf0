"""A dispatch rule: configurations with their times on tuned problems, from which it chooses for any problem.

Also makes and reads the text of a rule file.
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final

import yaml

from tuner.analysis.portfolio import NewProblem, Regret
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate, Seconds, Value
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, variables_of
from tuner.core.problem import Problem
from tuner.core.problem_documents import PROBLEM
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability
from tuner.core.roofline import Roofline
from tuner.core.runs import ChosenStrategy
from tuner.core.serialization import decode, encode, form, number, require_format, whole
from tuner.core.text_files import read_text
from tuner.space.file import yaml as strict_yaml
from tuner.space.file.entries import StrategyEntry, Variables
from tuner.space.file.reading import SpaceFile, load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import choose, spaces
from tuner.space.scripts.strategy import Binder, load_chosen
from tuner.space.search_space import SearchSpace
from tuner.tuning.pool import PoolProblem, projected_pool

KNOBS = form(dict[str, Value], dict, lambda knobs: tuple(sorted(knobs.items())))
Efficiency = Annotated[float, number("a number above 0 and up to 1", lambda found: 0 < found <= 1)]
FORMAT: Final = "tuner-rule"
VERSION: Final = 1
LIMIT_BYTES: Final = 4_000_000
HEAD: Final = ("format", "version", "sha256")  # the first lines; the hash is of all lines after them
AGAIN: Final = "tuner portfolio CAMPAIGN --configs K -o {}"


@dataclass(frozen=True)
class Configuration:
    """A strategy with knob values as chosen for all problems; a problem may allow only values near them."""

    strategy: str
    knobs: tuple[tuple[str, Value], ...] = field(metadata=KNOBS)

    @property
    def candidate(self) -> Candidate:
        """Returns the configuration as a candidate."""
        return Candidate(self.strategy, self.knobs)


@dataclass(frozen=True)
class RuleProblem:
    """A tuned problem of a rule, with one entry per configuration in each list."""

    problem: Problem = field(metadata=PROBLEM)
    count: Annotated[int, whole(1)]  # how often it occurs in what was tuned
    serves: int | None  # the configuration that serves it, by position; None: none does
    rounds_s: tuple[tuple[Seconds, ...], ...]  # seconds per call of each round; (): not timed
    residuals: tuple[float | None, ...]  # log(time / model cost), less the mean; None: no time or no model
    baseline_s: Seconds | None = None  # of the baseline library, interleaved; None: not timed
    best_s: Seconds | None = None  # the least time of any configuration that was tried; None: not recorded
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of the times


@dataclass(frozen=True)
class StatedRegret:
    """The efficiencies with which a rule was written: best known time / time of the chosen one, 0 to 1."""

    geomean: Efficiency
    worst: Efficiency
    held_out_geomean: Efficiency | None = None  # None: unknown, as of a single problem
    held_out_worst: Efficiency | None = None

    @classmethod
    def of(cls, in_sample: Regret, held_out: Regret) -> "StatedRegret | None":
        """Returns the means and worst cases of two regrets; None if no efficiency in the sample is known."""
        if in_sample.geomean is None or in_sample.worst is None:
            return None
        return cls(in_sample.geomean, in_sample.worst, held_out.geomean, held_out.worst)


@dataclass(frozen=True)
class DispatchRule:
    """Configurations and their times on tuned problems, from which one is chosen for any problem.

    Raises ValueError without configurations, for a repeated configuration or problem, and for lists of times
    of another length.
    """

    tuner: str  # version that wrote it
    date: str  # UTC, ISO 8601
    machine: str  # Machine.name: times are valid for it alone
    threads: Annotated[int, whole(1)]
    compiler: str  # Compiler.fingerprint, for people: ``read_rule`` does not compare it
    space_sha256: str  # of the strategies: ``ProblemSpaces.sha256``
    regret: StatedRegret | None
    configurations: tuple[Configuration, ...]
    problems: tuple[RuleProblem, ...]
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of all times, and the regret
    roofline: Roofline | None = None  # of the machine for the type and the threads; None: not recorded

    def __post_init__(self) -> None:
        size = len(self.configurations)
        if not size or len({*self.configurations}) != size:
            raise ValueError("configurations: is empty, or has one twice")
        if len({tuned.problem for tuned in self.problems}) != len(self.problems):
            raise ValueError("problems: has one twice")
        for index, tuned in enumerate(self.problems):
            if len(tuned.rounds_s) != size or len(tuned.residuals) != size:
                raise ValueError(f"problems[{index}]: found lists of another length, allowed {size}")
            if tuned.serves is not None and not 0 <= tuned.serves < size:
                raise ValueError(f"problems[{index}].serves: found {tuned.serves}, allowed 0..{size - 1}")

    @property
    def columns(self) -> tuple[Candidate, ...]:
        """Returns the configurations as candidates."""
        return tuple(configuration.candidate for configuration in self.configurations)

    def tuned(self, problem: Problem) -> RuleProblem | None:
        """Returns the rule's entry of exactly this problem; None if the problem was not tuned."""
        return next((tuned for tuned in self.problems if tuned.problem == problem), None)

    def matrix(self) -> TimeMatrix:
        """Returns the matrix of the least time of each configuration on each tuned problem.

        Its model costs are time / exp(residual), by stored residuals.
        """
        times_s = []
        applies = []
        costs = []
        for tuned in self.problems:
            row_s = tuple(min(rounds_s, default=None) for rounds_s in tuned.rounds_s)
            times_s.append(row_s)
            applies.append(tuple(time_s is not None for time_s in row_s))
            costs.append(tuple(map(_cost, row_s, tuned.residuals)))
        return TimeMatrix(
            problems=tuple(tuned.problem for tuned in self.problems),
            counts=tuple(tuned.count for tuned in self.problems),
            columns=self.columns,
            times_s=tuple(times_s),
            applies=tuple(applies),
            costs=tuple(costs),
        )


def _cost(time_s: float | None, residual: float | None) -> float:
    # up to a factor that all configurations of a problem share
    if time_s is None or residual is None:
        return math.inf
    return time_s / math.exp(residual)


@dataclass(frozen=True)
class ProjectedColumns:
    """A rule's configurations, projected onto one problem, with their costs by the cost model."""

    problem: Problem
    candidates: tuple[Candidate | None, ...]  # per configuration; None: it cannot do the problem
    costs: tuple[float, ...]  # per configuration; inf where there is no model, or nothing to run
    is_demoted: tuple[bool, ...]  # per configuration: it breaks a preference on the problem

    @property
    def new_problem(self) -> NewProblem:
        """Returns the problem for ``ranked_columns``: which configurations apply, and their costs."""
        return NewProblem(
            self.problem, tuple(candidate is not None for candidate in self.candidates), self.costs
        )


@dataclass(frozen=True)
class ProblemSpaces:
    """The search spaces of one search-space file for any problem, on one machine and thread count."""

    space_file: SpaceFile
    machine: Machine
    threads: int
    strategies: tuple[ChosenStrategy, ...]

    @classmethod
    def shipped(cls, machine: Machine, threads: int) -> "ProblemSpaces":
        """Returns the search spaces of the search-space file that tuner ships."""
        space_file = load_space_file(default_space_file())
        return cls(space_file, machine, threads, choose((), space_file))

    @cached_property
    def first(self) -> tuple[Candidate, ...]:
        """Returns the initial configurations that the search-space file lists, in its order."""
        isa = self.machine.isa
        return tuple(point for entry in self.space_file.strategies for point in entry.first_on(isa))

    def projected(self, problem: Problem, columns: Iterable[Candidate]) -> ProjectedColumns:
        """Returns ``columns`` projected onto a problem, with costs.

        Raises UsageError if no strategy is for it.
        """
        pool_problem = PoolProblem(problem, 1, self.spaces(problem))
        pool = projected_pool((pool_problem,), tuple(columns), self.machine, self.threads)
        return ProjectedColumns(problem, pool.candidates[0], pool.costs[0], pool.is_demoted[0])

    def script(self, problem: Problem, candidate: Candidate) -> Script:
        """Returns the bound script of a configuration that is allowed for the problem.

        Raises CandidateError of stage BIND if the script cannot take its values.
        """
        strategies = tuple(map(load_chosen, self.strategies))
        return Binder(strategies, problem, self._variables(problem), self.threads).bind(candidate)

    def sha256(self, strategies: Iterable[str]) -> str:
        """Returns a hash of the parts of strategies that projection uses: knobs and constraints; not scripts.

        It changes when a configuration of ``strategies`` may become another candidate.
        """
        meanings = [_meaning(self.space_file.strategy(name)) for name in sorted({*strategies})]
        return hashlib.sha256(json.dumps(meanings, default=str).encode()).hexdigest()

    def spaces(self, problem: Problem) -> tuple[SearchSpace, ...]:
        """Returns the search spaces of the strategies for a problem.

        Raises UsageError if no strategy is for it.
        """
        variables = self._variables(problem)
        return spaces(self.strategies, self.space_file, problem, self.machine.isa, variables)

    def _variables(self, problem: Problem) -> Variables:
        return variables_of(problem, self.machine, self.threads)


def _meaning(entry: StrategyEntry) -> tuple[object, ...]:
    knobs = [(knob.name, knob.choices) for knob in entry.knobs]
    constraints = [constraint.full_text for constraint in entry.constraints]
    return (entry.name, knobs, constraints, entry.projection)


# The file of a dispatch rule: YAML to read, with a checksum, for one machine and one search space.


def rule_text(rule: DispatchRule) -> str:
    """Returns the text of a rule file; ``parse_rule`` reads it."""
    body = yaml.safe_dump(encode(rule), sort_keys=False, width=110, default_flow_style=None)
    head = {"format": FORMAT, "version": VERSION, "sha256": _hash(body)}
    return "".join(f"{key}: {value}\n" for key, value in head.items()) + body


def parse_rule(text: str, name: str) -> DispatchRule:
    """Returns the rule in the text of a rule file; ``name``: of the file, for messages.

    Raises UsageError for a damaged or changed text, and for another format or version.
    """
    lines = text.split("\n", len(HEAD))
    head = {key: line.removeprefix(f"{key}: ") for key, line in zip(HEAD, lines, strict=False)}
    version = head.get("version", "")
    known = {"format": head.get("format"), "version": int(version) if version.isdecimal() else version}
    require_format(known, FORMAT, VERSION, name)
    if len(lines) <= len(HEAD) or head["sha256"] != _hash(lines[-1]):
        raise UsageError(f"{name}: is damaged or was changed: its sha256 differs", AGAIN.format(name))
    return decode(DispatchRule, strict_yaml.load(lines[-1], name), f"{name}: ")


def read_rule(path: Path, space: ProblemSpaces) -> DispatchRule:
    """Returns the rule in a file, for the machine and search spaces of ``space``.

    Raises UsageError for a damaged file, and for one of another machine, number of threads or search space.
    """
    rule = parse_rule(read_text(path, "a rule file of tuner portfolio", LIMIT_BYTES), f"{path}")
    if not space.machine.is_named(rule.machine):
        raise UsageError(
            f"{path}: was measured on {rule.machine!r}, this machine is {space.machine.name!r}",
            AGAIN.format(path),
        )
    if rule.threads != space.threads:
        raise UsageError(f"{path}: was measured with threads={rule.threads}, not with {space.threads}")
    space_sha256 = ""
    with contextlib.suppress(UsageError):  # of a strategy that is unknown in this space
        space_sha256 = space.sha256(configuration.strategy for configuration in rule.configurations)
    if space_sha256 != rule.space_sha256:
        raise UsageError(f"{path}: belongs to another search space", AGAIN.format(path))
    return rule


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
