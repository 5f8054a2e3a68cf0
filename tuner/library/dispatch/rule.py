"""A dispatch rule: few configurations with their times on tuned problems, to serve any problem by."""

import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from tuner.analysis.many_shapes.completed_times import known_times
from tuner.analysis.many_shapes.corrected_model import residuals
from tuner.analysis.many_shapes.portfolio import Portfolio
from tuner.analysis.many_shapes.regret import Regret
from tuner.analysis.many_shapes.time_matrix import TimeMatrix
from tuner.core.candidate import Candidate, Value
from tuner.core.dataclass_json import form, number, whole
from tuner.core.documents import PROBLEM
from tuner.core.problem import Problem
from tuner.core.recorded_round import Seconds
from tuner.core.reliability import AS_TEXT, NOT_RECORDED, Reliability, reliability_of_all
from tuner.library.dispatch.measured_group import MeasuredGroup

KNOBS = form(dict[str, Value], dict, lambda knobs: tuple(sorted(knobs.items())))
Efficiency = Annotated[float, number("a number above 0 and up to 1", lambda found: 0 < found <= 1)]


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
    """Configurations, unprojected, and the table of tuned problems: what serves a problem never tuned."""

    tuner: str  # version that wrote it
    date: str  # UTC, ISO 8601
    machine: str  # Machine.name: times are valid for it alone
    threads: Annotated[int, whole(1)]
    compiler: str  # Compiler.fingerprint
    space_sha256: str  # of the strategies: ``SpaceOfProblems.sha256``
    regret: StatedRegret | None
    configurations: tuple[Configuration, ...]
    problems: tuple[RuleProblem, ...]
    reliability: Reliability = field(default=NOT_RECORDED, metadata=AS_TEXT)  # of all times, and the regret

    def __post_init__(self) -> None:
        """Raises ValueError for no configuration, repeated ones or problems, and lists of other lengths."""
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
        return tuple(each.candidate for each in self.configurations)

    def tuned(self, problem: Problem) -> RuleProblem | None:
        """Returns the entry of exactly this problem; None where it was not tuned."""
        return next((each for each in self.problems if each.problem == problem), None)

    def matrix(self) -> TimeMatrix:
        """Returns the table as a matrix of times: of each cell the least round.

        Its costs are those that give the stored residuals, so that they need not be computed again.
        """
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
    """Returns a model cost with a residual, up to a factor that all configurations of a problem share."""
    return math.inf if time_s is None or residual is None else time_s / math.exp(residual)


def distilled(
    group: MeasuredGroup,
    portfolio: Portfolio,
    regret: StatedRegret | None,
    space_sha256: str,
    made: tuple[str, str],
) -> DispatchRule:
    """Returns the rule of a portfolio, with the measured times of its configurations.

    Predicted times are left out. ``made``: the version of tuner, and the date in UTC as ISO 8601.
    """
    columns = portfolio.columns
    table = residuals(known_times(group.matrix))
    problems = [
        RuleProblem(
            problem=problem,
            count=group.matrix.counts[row],
            serves=None if portfolio.serving[row] is None else columns.index(portfolio.serving[row]),
            rounds_s=tuple(group.rounds_s[row][column] for column in columns),
            residuals=tuple(_number(table[row, column]) for column in columns),
            baseline_s=group.baselines_s[row],
            reliability=group.reliability[row],
        )
        for row, problem in enumerate(group.matrix.problems)
    ]
    return DispatchRule(
        tuner=made[0],
        date=made[1],
        machine=group.machine.name,
        threads=group.threads,
        compiler=group.compiler.fingerprint,
        space_sha256=space_sha256,
        regret=regret,
        reliability=reliability_of_all(group.reliability),
        configurations=tuple(
            Configuration(group.matrix.columns[column].strategy, group.matrix.columns[column].choices)
            for column in columns
        ),
        problems=tuple(problems),
    )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
