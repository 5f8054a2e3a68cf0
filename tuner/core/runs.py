"""What the results database gives and takes: runs, trials and queries, as values."""

import datetime
from dataclasses import dataclass, field
from typing import Any

from tuner.core.candidate import Candidate, Value
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.pass_seconds import CompileSeconds
from tuner.core.problem import Problem
from tuner.core.record import Measurement, Record
from tuner.core.target_name import TargetName

# Origins of a first point.
WARM_START = "warm start"  # it was among the best of a problem like this one
SPACE_FILE = "space file"  # the file lists it under ``first``
SEED = "seed"  # a cost model of the machine ranks it high
ORIGINS = (WARM_START, SPACE_FILE, SEED)


@dataclass(frozen=True)
class FirstPoint:
    """A feasible candidate and where it comes from."""

    candidate: Candidate
    origin: str  # one of ORIGINS
    source: str = ""  # of a warm start: "512x512x512 (run 3)"

    def __post_init__(self) -> None:
        """Raises ValueError for another origin."""
        if self.origin not in ORIGINS:
            raise ValueError(f"origin: found {self.origin!r}, allowed {', '.join(ORIGINS)}")


@dataclass(frozen=True)
class RunSettings:
    """Everything that a resumed run must be given again."""

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
    fresh: bool = False  # re-run what is known
    warm_start: bool = False  # begin with what was best for the nearest problems
    warm_files: tuple[str, ...] = ()  # recordings to learn from as well
    first: tuple[FirstPoint, ...] | None = None  # proposed before any other; None: not chosen yet
    recording: str = ""  # of a replay: the path of its file


@dataclass(frozen=True)
class Baseline:
    """The baseline measured beside: in a process of its own, or in turns with the finalists."""

    name: str  # "OpenBLAS 0.3.30 SkylakeX", "oneDNN ..."
    threads: int  # 0: on a GPU
    measurement: Measurement
    is_interleaved: bool = False  # timed sample by sample with the top candidates, not in a process alone


@dataclass(frozen=True)
class RemoteMeasurement:
    """Where the times of a run were taken, when that was not by the tuner that has the run."""

    session: str  # uuid of the measuring
    bundle: str  # sha256 of the manifest that the candidates came in
    tuner: str  # version that measured
    driver: str  # the newest CUDA that the driver there knows
    source: str  # uuid of the run whose candidates these are, under the same numbers


@dataclass(frozen=True)
class Run:
    """One run of the tuner."""

    id: int
    settings: RunSettings
    machine: Machine
    compiler: Compiler
    tuner_version: str
    status: str  # "running", "done", "interrupted"
    created: datetime.datetime  # UTC
    seconds: float | None  # wall time of all sessions of the run
    noise: float | None  # A/A noise floor: relative difference that means nothing
    load_average: float | None  # at the start
    baseline: Baseline | None
    search_s: float | None = None  # of ``seconds``, those before the finals; None: not told
    idle_s: float | None = None  # of ``search_s``, those in which nothing was loaded, verified or timed
    elsewhere: RemoteMeasurement | None = None  # None: measured by this tuner
    roofline: Roofline | None = None  # measured with the answer; None: interrupted, or it failed
    unreliable: str = ""  # why the answer's figures mean nothing; "" where they can be relied on
    uuid: str = ""  # the same in every database that the run is merged into

    @property
    def idle_share(self) -> float | None:
        """Returns the part of the search in which the measuring worker had nothing to do; None: not told."""
        if not self.search_s or self.idle_s is None:
            return None
        return self.idle_s / self.search_s


@dataclass(frozen=True, repr=False)
class StoredTrial:
    """A trial whose outcome arrived, as history tells it."""

    id: int
    run: int
    number: int
    row: int
    record: Record
    final: Measurement | None  # re-timed interleaved with the other finalists
    script_text: str
    created: datetime.datetime  # UTC, when it was proposed
    machine: Machine
    threads: int
    stale: str = ""  # why its time no longer holds: an audit said so
    unreliable: str = ""  # why its final time means nothing; "" where it can be relied on
    compile_seconds: CompileSeconds | None = None  # of compiling it again; None: nobody asked

    def __repr__(self) -> str:
        """Returns one line: a script and its samples are asked for by name."""
        problem = f"{self.record.problem.key}, {self.record.target.text}"
        return (
            f"StoredTrial({self.id} of run {self.run}: {problem}: "
            f"{self.record.candidate.text}, {self._outcome_text()})"
        )

    def _outcome_text(self) -> str:
        status = self.record.status
        if self.early_stopped is not None:
            return f"{status} > {self.early_stopped.least_s:.4g} s, early-stopped"
        return status if self.best_s is None else f"{status} {self.best_s:.4g} s"

    @property
    def strategy(self) -> str:
        """Returns the name of the strategy."""
        return self.record.candidate.strategy

    @property
    def knobs(self) -> dict[str, Value]:
        """Returns the knobs by name."""
        return dict(self.record.candidate.choices)

    @property
    def script(self) -> str:
        """Returns the bound transform script; '' for a replay, and where binding failed."""
        return self.script_text if self.record.target.has_machine else ""

    @property
    def time_s(self) -> float | None:
        """Returns the time that counts, as ``best_s``."""
        return self.best_s

    @property
    def early_stopped(self) -> Measurement | None:
        """Returns the measurement that was cut short where the trial has no other: a bound, no result."""
        outcome = self.record.outcome
        if self.final is not None or not isinstance(outcome, Measurement) or outcome.is_complete:
            return None
        return outcome

    @property
    def best_s(self) -> float | None:
        """Returns the final median if there is one, else the first; None when it was not timed."""
        return self.record.median_s if self.final is None else self.final.median_s


@dataclass(frozen=True)
class Proposal:
    """A candidate that a run has proposed, and its trial where the outcome arrived."""

    id: int  # of the trial, which it has from the start
    number: int
    row: int
    candidate: Candidate
    trial: StoredTrial | None  # None: no outcome: its session was killed, or is still running


@dataclass(frozen=True)
class TaskQuery:
    """Which problem, target and machine to ask about; None means any."""

    operation: str | None = None
    shape: str | None = None  # "512x512x512"
    dtype: str | None = None
    layout: str | None = None
    epilogue: str | None = None
    output: str | None = None  # Problem.output: "" is the natural one
    target: str | None = None  # "simulator" means every chip
    machine: str | None = None  # Machine.name
    threads: int | None = None

    @classmethod
    def of(cls, problem: Problem, **narrower: Any) -> "TaskQuery":
        """Asks about one problem; ``narrower`` are further fields."""
        return cls(
            operation=problem.operation,
            shape=problem.shape,
            dtype=problem.dtype,
            layout=problem.layout,
            epilogue=problem.epilogue,
            output=problem.output,
            **narrower,
        )


@dataclass(frozen=True)
class TrialQuery:
    """Which trials to list; None means any."""

    task: TaskQuery = field(default_factory=TaskQuery)
    strategy: str | None = None
    status: str | None = None  # measured, verified, failed
    run: int | None = None
    since: datetime.datetime | None = None
    best: bool = (
        False  # the best per problem, target, threads and machine: see ``tuner.run_history.best_trials``
    )
    limit: int | None = None
    sort: str = "created"  # created, median, number; "-" before it reverses

    @classmethod
    def measured(
        cls, problem: Problem, target: TargetName, machine: Machine, threads: int, **narrower: Any
    ) -> "TrialQuery":
        """Asks for the trials whose times compare; ``narrower`` are further fields."""
        task = TaskQuery.of(problem, target=target.text, machine=machine.name, threads=threads)
        return cls(task, status="measured", **narrower)


@dataclass(frozen=True)
class BestGroup:
    """What a best trial is the best of: times within a group compare."""

    problem: str  # Problem.key
    target: str  # TargetName.text
    threads: int
    machine: str  # Machine.name


@dataclass(frozen=True)
class RunBound:
    """A run that has times, and a bound of its answer's time."""

    run: int
    group: BestGroup
    is_unreliable: bool  # the round that answers is
    least_s: float  # of the trials asked for: the run's answer is not faster


@dataclass(frozen=True)
class RunQuery:
    """Which runs to list; None means any."""

    task: TaskQuery = field(default_factory=TaskQuery)
    status: str | None = None  # running, done, interrupted
    since: datetime.datetime | None = None  # begun since then
    limit: int | None = None  # the latest


@dataclass(frozen=True)
class ReuseKey:
    """Equal keys mean equal outcomes: same code on the same class of machine."""

    problem: Problem
    target: TargetName
    threads: int
    machine: str  # Machine.name
    compiler: str  # Compiler.fingerprint


@dataclass(frozen=True)
class Counts:
    """What became of a run's trials."""

    proposed: int = 0
    measured: int = 0
    verified: int = 0
    failed: int = 0
    reused: int = 0


@dataclass(frozen=True)
class Imported:
    """What came of results that another machine sent."""

    runs: int  # that are new here
    trials: int  # of them, or of runs that came before
    known: int  # trials that were here already


@dataclass(frozen=True)
class Pruned:
    """What was deleted because no answer needs it."""

    trials: int
    scripts: int
    programs: int  # compiled ones, of GPUs


@dataclass(frozen=True)
class DatabaseInfo:
    """What ``tuner db info`` tells."""

    url: str  # password hidden
    revision: str
    runs: int
    trials: int
    problems: tuple[str, ...] = field(default=())
