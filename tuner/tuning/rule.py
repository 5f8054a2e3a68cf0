"""A dispatch rule: configurations with their times on tuned problems, to serve any problem; and its file."""

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
from tuner.core.candidate import PROBLEM, Candidate, ChosenStrategy, Seconds, Value
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, Roofline, variables_of
from tuner.core.problem import Problem
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability
from tuner.core.serialization import decode, encode, form, number, read_text, require_format, whole
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
# The file of a dispatch rule: YAML to read, with a checksum, for one machine and one search space.
FORMAT: Final = "tuner-rule"
VERSION: Final = 1
LIMIT_BYTES: Final = 4_000_000
HEAD: Final = ("format", "version", "sha256")  # the first lines; the hash is of all lines after them
AGAIN: Final = "tuner portfolio CAMPAIGN --configs K -o {}"


@dataclass(frozen=True)
class Configuration:
    """A strategy with knob values as they were chosen, before projection onto a problem."""

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
    """Efficiencies that a rule was written with: best known time / time of what serves, 0 to 1."""

    geomean: Efficiency
    worst: Efficiency
    held_out_geomean: Efficiency | None = None  # None: unknown, as of a single problem
    held_out_worst: Efficiency | None = None

    @classmethod
    def of(cls, in_sample: Regret, held_out: Regret) -> "StatedRegret | None":
        """Returns the figures of two regrets; None where nothing is known of the problems tuned."""
        if in_sample.geomean is None or in_sample.worst is None:
            return None
        return cls(in_sample.geomean, in_sample.worst, held_out.geomean, held_out.worst)


@dataclass(frozen=True)
class DispatchRule:
    """Configurations before projection, and tuned problems: both decide what serves a problem not tuned."""

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
        if len({each.problem for each in self.problems}) != len(self.problems):
            raise ValueError("problems: has one twice")
        for place, each in enumerate(self.problems):
            if len(each.rounds_s) != size or len(each.residuals) != size:
                raise ValueError(f"problems[{place}]: found lists of another length, allowed {size}")
            if each.serves is not None and not 0 <= each.serves < size:
                raise ValueError(f"problems[{place}].serves: found {each.serves}, allowed 0..{size - 1}")

    @property
    def columns(self) -> tuple[Candidate, ...]:
        """Returns the configurations as candidates."""
        return tuple(configuration.candidate for configuration in self.configurations)

    def tuned(self, problem: Problem) -> RuleProblem | None:
        """Returns the entry of exactly this problem; None where it was not tuned."""
        return next((each for each in self.problems if each.problem == problem), None)

    def matrix(self) -> TimeMatrix:
        """Returns the least times as a matrix; model costs are time / exp(residual), by stored residuals."""
        times = tuple(tuple(min(rounds, default=None) for rounds in each.rounds_s) for each in self.problems)
        return TimeMatrix(
            problems=tuple(each.problem for each in self.problems),
            counts=tuple(each.count for each in self.problems),
            columns=self.columns,
            times_s=times,
            applies=tuple(tuple(time is not None for time in row) for row in times),
            costs=tuple(
                tuple(map(_cost, row, each.residuals)) for row, each in zip(times, self.problems, strict=True)
            ),
        )


def _cost(time_s: float | None, residual: float | None) -> float:
    # up to a factor that all configurations of a problem share
    if time_s is None or residual is None:
        return math.inf
    return time_s / math.exp(residual)


@dataclass(frozen=True)
class ProjectedColumns:
    """What configurations become on one problem, with what the cost model expects of each."""

    problem: Problem
    candidates: tuple[Candidate | None, ...]  # per configuration; None: it cannot do the problem
    costs: tuple[float, ...]  # per configuration; inf where there is no model, or nothing to run

    @property
    def new_problem(self) -> NewProblem:
        """Returns the problem as the choice among the columns of a matrix takes it."""
        return NewProblem(self.problem, tuple(each is not None for each in self.candidates), self.costs)


@dataclass(frozen=True)
class ProblemSpaces:
    """A search-space file on one machine with a number of threads, for problems of any size."""

    space_file: SpaceFile
    machine: Machine
    threads: int
    strategies: tuple[ChosenStrategy, ...]

    @classmethod
    def shipped(cls, machine: Machine, threads: int) -> "ProblemSpaces":
        """Returns the instance for the search-space file that tuner ships."""
        space_file = load_space_file(default_space_file())
        return cls(space_file, machine, threads, choose((), space_file))

    @cached_property
    def first(self) -> tuple[Candidate, ...]:
        """Returns the configurations that the file lists to begin with, in its order."""
        return tuple(point for entry in self.space_file.strategies for point in entry.first)

    def projected(self, problem: Problem, columns: Iterable[Candidate]) -> ProjectedColumns:
        """Returns a problem's configurations and model costs; raises UsageError without a strategy."""
        of = PoolProblem(problem, 1, self.spaces(problem))
        pool = projected_pool((of,), tuple(columns), self.machine, self.threads)
        return ProjectedColumns(problem, pool.candidates[0], pool.costs[0])

    def script(self, problem: Problem, candidate: Candidate) -> Script:
        """Returns the script of a configuration that is allowed for the problem. Raises CandidateError."""
        strategies = tuple(map(load_chosen, self.strategies))
        return Binder(strategies, problem, self._variables(problem), self.threads).bind(candidate)

    def sha256(self, strategies: Iterable[str]) -> str:
        """Hashes what makes a candidate of a configuration: knobs, constraints, projections; not scripts."""
        meanings = [_meaning(self.space_file.strategy(name)) for name in sorted({*strategies})]
        return hashlib.sha256(json.dumps(meanings, default=str).encode()).hexdigest()

    def spaces(self, problem: Problem) -> tuple[SearchSpace, ...]:
        """Returns the search spaces of a problem's strategies; raises UsageError without any."""
        variables = self._variables(problem)
        return spaces(self.strategies, self.space_file, problem, self.machine.isa, variables)

    def _variables(self, problem: Problem) -> Variables:
        return variables_of(problem, self.machine, self.threads)


def _meaning(entry: StrategyEntry) -> tuple[object, ...]:
    knobs = [(knob.name, knob.choices) for knob in entry.knobs]
    constraints = [constraint.full_text for constraint in entry.constraints]
    return (entry.name, knobs, constraints, entry.projection)


def rule_text(rule: DispatchRule) -> str:
    """Returns the text of a rule file; ``parse_rule`` reads it."""
    body = yaml.safe_dump(encode(rule), sort_keys=False, width=110, default_flow_style=None)
    head = {"format": FORMAT, "version": VERSION, "sha256": _hash(body)}
    return "".join(f"{key}: {value}\n" for key, value in head.items()) + body


def parse_rule(text: str, name: str) -> DispatchRule:
    """Returns the rule of the file ``name``; raises UsageError for a damaged, changed or unknown file."""
    lines = text.split("\n", len(HEAD))
    head = {key: line.removeprefix(f"{key}: ") for key, line in zip(HEAD, lines, strict=False)}
    version = head.get("version", "")
    known = {"format": head.get("format"), "version": int(version) if version.isdecimal() else version}
    require_format(known, FORMAT, VERSION, name)
    if len(lines) <= len(HEAD) or head["sha256"] != _hash(lines[-1]):
        raise UsageError(f"{name}: is damaged or was changed: its sha256 differs", AGAIN.format(name))
    return decode(DispatchRule, strict_yaml.load(lines[-1], name), f"{name}: ")


def read_rule(path: Path, space: ProblemSpaces) -> DispatchRule:
    """Returns a file's rule; raises UsageError: damaged, another machine, number of threads, search space."""
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
