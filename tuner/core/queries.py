"""Queries of the results database: conditions on problems, trials and runs, and counts that it returns.

``TaskQuery``, ``TrialQuery`` and ``RunQuery`` are conditions. ``BestGroup``, ``RunBound`` and ``ReuseKey``
say which trials are compared or reused. The other values are counts.
"""

import datetime
from dataclasses import dataclass, field
from typing import Any

from tuner.core.candidate import TargetName
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.runs import Compiler
from tuner.core.serialization import count_text

# Fields of TaskQuery, and attributes of Problem
OF_PROBLEM = (
    "key",
    "operation",
    "shape",
    "dtype",
    "layout",
    "epilogue",
    "output",
    "align",
    "cache",
    "weights",
)


@dataclass(frozen=True)
class TaskQuery:
    """Conditions of a database query on problem, target, machine and threads; None in a field allows all."""

    operation: str | None = None
    shape: str | None = None  # "512x512x512"
    dtype: str | None = None
    layout: str | None = None
    epilogue: str | None = None
    output: str | None = None  # Problem.output: "" is the type of the sums
    align: str | None = None  # Problem.align
    cache: str | None = None  # Problem.cache
    weights: str | None = None  # Problem.weights: "" where B comes at each call
    key: str | None = None  # Problem.key
    target: str | None = None  # "cpu", "simulator:sm_90"; "simulator" means every chip
    machine: str | None = None  # Machine.name
    threads: int | None = None

    @classmethod
    def of(cls, problem: Problem, **narrower: Any) -> "TaskQuery":
        """Returns the conditions for exactly one problem.

        ``narrower``: further fields, such as ``target``.
        """
        return cls(**{name: getattr(problem, name) for name in OF_PROBLEM}, **narrower)


@dataclass(frozen=True)
class TrialQuery:
    """Conditions of a database query on trials, with limit and order; None in a field allows all."""

    task: TaskQuery = field(default_factory=TaskQuery)
    strategy: str | None = None
    status: str | None = None  # measured, verified, failed
    run: int | None = None
    since: datetime.datetime | None = None
    best: bool = False  # the best per problem, target, threads and machine: see ``tuner.results.best_trials``
    limit: int | None = None
    sort: str = "created"  # created, median, number; a leading "-" reverses the order

    @classmethod
    def measured(
        cls, problem: Problem, target: TargetName, machine: Machine, threads: int, **narrower: Any
    ) -> "TrialQuery":
        """Returns the query for timed trials of one problem, target, machine and number of threads.

        ``narrower``: further fields of the query, such as ``limit``.
        """
        task = TaskQuery.of(problem, target=target.text, machine=machine.name, threads=threads)
        return cls(task, status="measured", **narrower)


@dataclass(frozen=True)
class BestGroup:
    """What trials must share for comparable times: problem, target, threads and machine."""

    problem: str  # Problem.key
    target: str  # TargetName.text
    threads: int
    machine: str  # Machine.name


@dataclass(frozen=True)
class RunBound:
    """A run that has times, and a lower bound of the seconds of its selected (best) trial."""

    run: int
    group: BestGroup
    is_unreliable: bool  # True: the timing round of the selected result is unreliable
    least_s: float  # of the query's trials in the selected timing round; if none is in one, of all


@dataclass(frozen=True)
class RunQuery:
    """Conditions of a database query on runs; None in a field allows all."""

    task: TaskQuery = field(default_factory=TaskQuery)
    status: str | None = None  # running, done, interrupted
    since: datetime.datetime | None = None  # started at this moment or later
    limit: int | None = None  # at most so many, the latest


@dataclass(frozen=True)
class ReuseKey:
    """Values that must be equal for a stored outcome to be reused in place of a new measurement.

    For an equal script the whole compiler must be equal; for equal code only ``Compiler.tools``.
    """

    problem: Problem
    target: TargetName
    threads: int
    machine: str  # Machine.name
    compiler: Compiler


@dataclass(frozen=True)
class Counts:
    """Numbers of a run's trials: proposed, and by outcome.

    A reused outcome is counted by its outcome, too.
    """

    proposed: int = 0
    measured: int = 0
    verified: int = 0
    failed: int = 0
    reused: int = 0
    compiled: int = 0  # for another processor, whose code cannot run here: nothing was verified


@dataclass(frozen=True)
class Imported:
    """How many runs and trials an import of remote results added, and how many trials were known."""

    runs: int  # new runs
    trials: int  # new trials, of new runs or of runs imported before
    known: int  # trials that were stored already


@dataclass(frozen=True)
class Pruned:
    """How many trials, scripts and compiled programs were deleted because no selected result needs them."""

    trials: int
    scripts: int
    programs: int  # compiled GPU programs


@dataclass(frozen=True)
class DatabaseInfo:
    """What ``tuner db info`` prints: address and revision of a database, and what it stores."""

    url: str  # password hidden
    revision: str
    runs: int
    trials: int
    problems: tuple[str, ...] = field(default=())


ASKING = {"trial": "tuner history", "run": "tuner history --runs"}  # noun -> the command that lists IDs


def nothing_matches(command: str, noun: str, database: DatabaseInfo) -> str:
    """Returns the message for a query that matches nothing stored, with a hint on the next line.

    ``noun``: "trial" or "run". ``command``: the hint if the database stores no trial (or run) at all.
    """
    stored = {"trial": database.trials, "run": database.runs}[noun]
    if not stored:
        return f"no history yet in {database.url}\nhint: {command}"
    return f"no {noun} matches; {count_text(stored, noun)} without conditions\nhint: {ASKING[noun]}"
