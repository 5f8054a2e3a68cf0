"""Groups of runs as values: many problems tuned under one budget, each as a run of its own."""

import datetime
from dataclasses import dataclass

from tuner.core.candidate import Candidate
from tuner.core.program_result import ProgramResult, ProgramSource
from tuner.core.runs import Proposal, Run, RunSettings


@dataclass(frozen=True)
class GroupSettings:
    """What runs of a group share: one budget, one seed, and the configurations to try on every problem."""

    source: str  # name of the file with the problems; "" for a call from Python
    trials: int | None  # budget of all runs together; None: no limit
    budget_s: float | None  # budget in seconds of all runs together; None: no limit
    seed: int
    columns: tuple[Candidate, ...]  # unprojected configurations, tried on every problem that they suit
    # for each problem the seconds that the machine's roofline allows at best; (): unknown
    floors_s: tuple[float, ...] = ()
    program: ProgramSource | None = None  # whose groups of operations the problems are, if it is a file


@dataclass(frozen=True)
class GroupMember:
    """One problem of a new group: the settings of its run, and what the user calls it."""

    settings: RunSettings
    name: str  # of a layer or a function; "": none
    count: int  # how often the problem occurs in what is tuned, at least 1


@dataclass(frozen=True)
class RunGroup:
    """A stored group: its settings, its progress, and its runs, one per problem."""

    id: int
    uuid: str  # the same in every database that the group is merged into
    created: datetime.datetime  # UTC
    settings: GroupSettings
    status: str  # "running", "done", "interrupted"; as it was when the group was read
    seconds: float  # wall time of all sessions
    search_s: float  # part of it that counts for the budget: without the final re-measurements
    runs: tuple[Run, ...]  # in the order of the problems
    result: ProgramResult | None = None  # of a program that was run after the tuning


@dataclass(frozen=True)
class GroupProposal:
    """A candidate that a group has proposed for one of its problems."""

    number: int  # within the group, in the order of proposals
    run: int  # id of the run
    column: Candidate  # the configuration before its projection onto the problem
    proposal: Proposal  # with the projected candidate, and its outcome if there is one
