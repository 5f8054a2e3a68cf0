"""Values that the results database stores and returns: runs, trials, and queries for them."""

import datetime
from dataclasses import dataclass, field
from typing import Any

from tuner.core.candidate import Candidate, ChosenStrategy, TargetName, Value
from tuner.core.errors import UsageError
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.records import CompileSeconds, Measurement, Record
from tuner.core.reliability import Reliability, unknown
from tuner.core.serialization import seconds_text

# Origins of an initial configuration.
WARM_START = "warm start"  # among the best of a similar problem
SHIPPED = "shipped"  # chosen by results that come with tuner
SPACE_FILE = "space file"  # listed under ``first`` in the search-space file
SEED = "seed"  # ranked high by a cost model of the machine
ORIGINS = (WARM_START, SHIPPED, SPACE_FILE, SEED)

NOT_TIMED = unknown("not timed")
REPLAYED = unknown("the time of a recording, nothing ran here")
NO_ROUND = unknown("no final re-measurement with a noise floor")
# Fields of TaskQuery, and attributes of Problem
OF_PROBLEM = (
    *("key", "operation", "shape", "dtype", "layout", "epilogue", "output", "align", "cache", "weights"),
)


@dataclass(frozen=True)
class InitialConfiguration:
    """A candidate that a run proposes before the sampler's; the problem's constraints may exclude it."""

    candidate: Candidate
    origin: str  # one of ORIGINS
    source: str = ""  # of a warm start: "512x512x512 (run 3)"

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise ValueError(f"origin: found {self.origin!r}, allowed {', '.join(ORIGINS)}")


@dataclass(frozen=True)
class RunSettings:
    """All settings of a run, such as problem, target, sampler and budget: enough to resume the run."""

    problem: Problem
    target: TargetName
    threads: int
    strategies: tuple[ChosenStrategy, ...]
    space_yaml: str  # text of the search space in force; "" for a replay
    sampler: str
    seed: int
    trials: int | None  # budget; None: no limit
    budget_s: float | None  # budget in seconds; None: no limit
    workers: int
    fresh: bool = False  # compile and time again what is known
    warm_start: bool = False  # begin with the best candidates of the nearest problems
    warm_files: tuple[str, ...] = ()  # recordings to take warm-start points from as well
    # proposed before any other candidate; None: not chosen yet
    first: tuple[InitialConfiguration, ...] | None = None
    # times of the same configurations on other machines when the run began: see tuner.search.prior
    prior: str = field(default="", repr=False)
    recording: str = ""  # of a replay: the path of its file
    baseline_library: str = ""  # "best", or a library by name; "": the default of the target and the type
    # Names the search space in messages: its file; the default for a stored run, whose file may have changed
    space_name: str = field(default="search space", compare=False)


@dataclass(frozen=True)
class LibraryTime:
    """The time of one of the libraries that a baseline was chosen from, or why it has no time."""

    library: str  # "openblas", "mkl"
    name: str  # with version and kernel; "": it failed before they were known
    median_s: float | None = None  # seconds per call; None: it failed
    interval_s: tuple[float, float] | None = None  # 95 % bootstrap interval of the median
    failure: str = ""  # one line; "": it was timed


@dataclass(frozen=True)
class Baseline:
    """The time of a baseline library for a problem: timed alone, or interleaved with the top trials."""

    name: str  # "OpenBLAS 0.3.30 SkylakeX", "oneDNN ..."
    threads: int  # 0: on a GPU
    measurement: Measurement
    is_interleaved: bool = False  # timed sample by sample with the top candidates, not in a process alone
    # All that were timed to choose the fastest, that one first, failed ones last; (): there was no choice
    libraries: tuple[LibraryTime, ...] = ()


@dataclass(frozen=True)
class RemoteMeasurement:
    """Where the times of a run were measured, if not on the machine that stores the run."""

    session: str  # uuid of the measuring session
    bundle: str  # sha256 of the bundle's manifest
    tuner: str  # version that measured
    driver: str  # the newest CUDA version that the measuring machine's driver supports
    source: str  # uuid of the run that proposed the candidates, under the same numbers


@dataclass(frozen=True)
class CampaignPlace:
    """The position of a run in its campaign, a set of runs that share one budget."""

    campaign: int  # id of the campaign
    place: int  # among the runs of the campaign: 0, 1, ...
    name: str  # of the problem, such as that of a layer; "": none
    count: int  # how often the problem occurs in what is tuned


@dataclass(frozen=True, repr=False)
class Run:
    """One run of the tuner: settings, machine, compiler, status, and times and noise of the whole run."""

    id: int
    settings: RunSettings
    machine: Machine
    compiler: Compiler
    tuner_version: str
    status: str  # "running", "done", "interrupted"; as it was when the run was read
    created: datetime.datetime  # UTC
    seconds: float | None  # wall time of all sessions of the run
    noise: float | None  # A/A noise floor: relative differences below it mean nothing
    load_average: float | None  # at the start of the run
    baseline: Baseline | None
    search_s: float | None = None  # part of ``seconds`` before the final re-measurement; None: unknown
    idle_s: float | None = None  # part of ``search_s`` in which nothing was loaded, verified or timed
    elsewhere: RemoteMeasurement | None = None  # None: measured on this machine
    roofline: Roofline | None = None  # measured at the end; None: interrupted, or the measurement failed
    reliability: Reliability = NO_ROUND  # of the times of the final re-measurement
    uuid: str = ""  # the same in every database that the run is merged into
    campaign: CampaignPlace | None = None  # None: a run of its own

    def __repr__(self) -> str:
        """Returns one line: problem, target, machine, status."""
        problem = self.settings.problem.key
        target = self.settings.target
        return f"Run({self.id}: {problem}, {target} on {self.machine.name}, {self.status})"

    @property
    def idle_share(self) -> float | None:
        """Returns the share of the search in which nothing was loaded, verified or timed; None: unknown."""
        if not self.search_s or self.idle_s is None:
            return None
        return self.idle_s / self.search_s


@dataclass(frozen=True, repr=False)
class StoredTrial:
    """A trial with its outcome, as read from the results database, with the machine it ran on."""

    id: int
    run: int
    number: int
    row: int  # index of the candidate in the run's feasible set
    record: Record
    final: Measurement | None  # of the final re-measurement, interleaved with other trials
    stored_script: str  # as stored, altered or not: ``script_text`` is what may be run
    created: datetime.datetime  # UTC, when it was proposed
    machine: Machine
    threads: int
    stale: str = ""  # why the time no longer holds, from an audit; "" where it holds
    reliability: Reliability = NOT_TIMED  # of the time that counts
    compile_seconds: CompileSeconds | None = None  # seconds per pass; None: not measured
    is_altered: bool = False  # the stored script is not the one that the trial ran

    def __repr__(self) -> str:
        """Returns one line without script and samples: problem, target, candidate, status and time."""
        problem = f"{self.record.problem.key}, {self.record.target.text}"
        outcome = self.record.status
        if self.early_stopped is not None:
            outcome += f" > {self.early_stopped.least_s:.4g} s, early-stopped"
        elif self.best_s is not None:
            outcome += f" {self.best_s:.4g} s, {self.reliability.word}"
        return f"StoredTrial({self.id} of run {self.run}: {problem}: {self.record.candidate.text}, {outcome})"

    @property
    def summary(self) -> str:
        """Returns the origin of a kernel of this trial: 'trial 3 of run 1, 2.9 us, reliable'."""
        if self.best_s is None:
            time = "not timed"
        else:
            time = f"{seconds_text(self.best_s)}, {self.reliability.word}"
        return f"trial {self.id} of run {self.run}, {time}"

    @property
    def strategy(self) -> str:
        """Returns the name of the candidate's strategy."""
        return self.record.candidate.strategy

    @property
    def knobs(self) -> dict[str, Value]:
        """Returns the values of the candidate's knobs by the names of the knobs."""
        return dict(self.record.candidate.choices)

    @property
    def script_text(self) -> str:
        """Returns the bound script; "" where binding failed.

        Raises UsageError if the stored text was altered.
        """
        require_unaltered(self)
        return self.stored_script

    @property
    def script(self) -> str:
        """Returns the bound transform script as text; "" for a replay, and where binding failed.

        Raises UsageError if the stored text was altered.
        """
        if self.record.target.has_machine:
            return self.script_text
        return ""

    @property
    def time_s(self) -> float | None:
        """Returns the median seconds per call, None if the trial was not timed.

        Another name of ``best_s``.
        """
        return self.best_s

    @property
    def early_stopped(self) -> Measurement | None:
        """Returns the measurement of an early-stopped trial that was not timed again; None for other trials.

        The kernel was clearly slower than the best trial of its run so far, so only a few samples were taken.
        """
        outcome = self.record.outcome
        if self.final is not None or not isinstance(outcome, Measurement) or outcome.is_complete:
            return None
        return outcome

    @property
    def best_s(self) -> float | None:
        """Returns the median seconds per call that count for this trial; None if it was not timed.

        They are of the final re-measurement, else of the first measurement, which may be early-stopped.
        """
        if self.final is None:
            return self.record.median_s
        return self.final.median_s


def require_unaltered(trial: StoredTrial) -> None:
    """Raises UsageError if the stored script of ``trial`` is not the one that the trial ran."""
    if trial.is_altered:
        raise UsageError(
            f"trial {trial.id}: its stored script was altered: the text does not match its hash "
            f"{trial.record.script_sha256[:12]}",
            "restore the database from a backup, or tune the problem again",
        )


@dataclass(frozen=True)
class Proposal:
    """A candidate that a run has proposed as trial ``number``, with its outcome if there is one."""

    id: int  # of the trial, known when the candidate is proposed
    number: int
    row: int  # index of the candidate in the run's feasible set
    candidate: Candidate
    trial: StoredTrial | None  # None: no outcome: its session was killed, or is still running


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
    """Problem, target, threads and machine: trials that share all four have comparable times."""

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
    least_s: float  # least seconds of the trials asked for: the run's selected result is not faster


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
