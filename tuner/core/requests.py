"""What a user asks for: a run, a campaign (problems that share one budget), the use of a fleet.

``RunRequest`` is what a user types. ``Campaign`` with its settings, members and proposals is what the
database stores of a campaign; ``Run``, in ``core.runs``, what it stores of a run.
"""

import datetime
import math
from dataclasses import dataclass
from pathlib import Path

from tuner.core.candidate import Candidate
from tuner.core.errors import UsageError
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.programs import ProgramResult, ProgramSource
from tuner.core.runs import Run, RunSettings
from tuner.core.trials import Proposal

NUMBER_MAX = 2**63 - 1  # largest integer of a database
DEFAULT_TRIALS = 100  # when neither trials nor a budget is given
TIMED_SAMPLER = "tpe"  # the default where candidates are timed
WORKERS_LIMIT = 4  # more workers would wait for the measurement worker
LEAST = {"threads": 1, "seed": 0, "trials": 1, "workers": 1}


@dataclass(frozen=True)
class CampaignSettings:
    """Settings that the runs of a campaign share: one budget, one seed, configurations for every problem."""

    source: str  # name of the file with the problems; "" for a call from Python
    trials: int | None  # budget of all runs together; None: no limit
    budget_s: float | None  # budget in seconds of all runs together; None: no limit
    seed: int
    # configurations, not yet projected onto a problem, that are tried on every problem which they suit: the
    # columns of the table of times with a row for each problem
    columns: tuple[Candidate, ...]
    # for each fusion the seconds that the machine's roofline allows at best; (): unknown, or other problems
    floors_s: tuple[float, ...] = ()
    program: ProgramSource | None = None  # whose fusions the problems are; None: no program in a file

    @property
    def are_fusions(self) -> bool:
        """Returns whether the roofline times of the problems are known, which they are for fusions alone."""
        return bool(self.floors_s)


@dataclass(frozen=True)
class CampaignMember:
    """One problem of a new campaign: the settings of its run, its name, and how often it occurs."""

    settings: RunSettings
    name: str  # of a layer or a function; "": none
    count: int  # how often the problem occurs in what is tuned, at least 1


@dataclass(frozen=True)
class Campaign:
    """A stored campaign: its settings, its progress, and its runs, one per problem."""

    id: int
    uuid: str  # the same in every database that the campaign is merged into
    created: datetime.datetime  # UTC
    settings: CampaignSettings
    status: str  # "running", "done", "interrupted"; as it was when the campaign was read
    seconds: float  # wall time of all sessions
    search_s: float  # part of it that counts for the budget: without the final re-measurements
    runs: tuple[Run, ...]  # in the order of the problems
    result: ProgramResult | None = None  # of a program that was run after the tuning


@dataclass(frozen=True)
class CampaignProposal:
    """A candidate that a campaign has proposed for one of its problems."""

    number: int  # within the campaign, in the order of proposals
    run: int  # id of the run
    column: Candidate  # of ``CampaignSettings.columns``: the configuration before its projection
    proposal: Proposal  # with the projected candidate, and its outcome if there is one


@dataclass(frozen=True)
class RunRequest:
    """All options of a new run, as the user writes them.

    ``run_settings`` adds those that depend on the machine. Raises UsageError for a count that is too small or
    not an integer, and for a budget that is not positive.
    """

    problem: Problem
    target: str = "auto"  # "auto", "cpu", "cuda:sm_90", "replay:FILE"
    chip: str = ""  # for a target without ":chip"
    threads: int = 1
    # names of the search-space file, or paths of scripts; (): the whole file
    strategies: tuple[Path | str, ...] = ()
    reopen: bool = False  # knobs whose value a script selects are open again
    libraries: tuple[Path | str, ...] = ()  # scripts whose sequences the scripts of strategies use
    space: Path | str | None = None  # None: the shipped file
    sampler: str | None = None  # None: the default of the target
    seed: int = 0
    trials: int | None = None
    budget_s: float | None = None
    workers: int | None = None  # None: as many as cores, at most WORKERS_LIMIT
    fresh: bool = False  # run again what earlier runs measured
    warm_start: bool = True  # begin with the best candidates of the nearest problems; not when ``fresh``
    warm_files: tuple[Path | str, ...] = ()  # recordings to learn from as well
    seeds: tuple[Path | str, ...] = ()  # files of configurations to try before all others
    baseline: str = ""  # "best", or a library by name, such as "mkl"; "": the default of the target

    def __post_init__(self) -> None:
        for name, low in LEAST.items():
            require_number(name, getattr(self, name), low)
        require_budget(self.budget_s)

    @property
    def trials_limit(self) -> int | None:
        """Returns the limit of trials; None: only time is limited.

        DEFAULT_TRIALS (100) if neither is limited.
        """
        if self.trials is None and self.budget_s is None:
            return DEFAULT_TRIALS
        return self.trials

    @property
    def strategy_text(self) -> tuple[str, ...]:
        return tuple(map(str, self.strategies))

    @property
    def library_paths(self) -> tuple[Path, ...]:
        return tuple(Path(file).absolute() for file in self.libraries)

    @property
    def warm_paths(self) -> tuple[str, ...]:
        return tuple(str(Path(file).absolute()) for file in self.warm_files)

    def workers_on(self, machine: Machine) -> int:
        """Returns the number of compile workers: ``workers``, else one per core up to WORKERS_LIMIT (4)."""
        if self.workers is None:
            return min(WORKERS_LIMIT, machine.physical_cores)
        return self.workers


def require_number(name: str, number: int | None, low: int) -> None:
    """Raises UsageError unless ``number`` is None or an int (not bool) from ``low`` to 2**63 - 1."""
    if number is not None and type(number) is not int:
        raise UsageError(f"{name}: found {number!r}, allowed an integer of {low} or more")
    if number is not None and number < low:
        raise UsageError(f"{name}: found {number}, allowed {low} or more")
    if number is not None and number > NUMBER_MAX:
        raise UsageError(f"{name}: found {number}, allowed {low} to {NUMBER_MAX}")


def require_budget(budget_s: float | None) -> None:
    """Raises UsageError unless ``budget_s`` is None or a positive, finite number of seconds."""
    if budget_s is None or (isinstance(budget_s, int | float) and 0 < budget_s < math.inf):
        return
    raise UsageError(f"budget: found {budget_s!r}, allowed seconds, more than 0")


@dataclass(frozen=True)
class FleetRequest:
    """Options of a run that a fleet measures: database URL, number of devices, priority, machine class.

    Raises UsageError for fewer than one device.
    """

    url: str
    devices: int = 1  # that a run measures on at once
    priority: int = 0  # larger goes first
    # classes of machines, on each of which a run measures, one after the other; (): one class. ``machine`` is
    # where the current run measures: the command line makes it the first of --on
    on: tuple[str, ...] = ()
    machine: str = ""  # class of machine to measure on, or part of its name; "": the only class there is

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise UsageError(f"devices: found {self.devices}, allowed 1 or more")
