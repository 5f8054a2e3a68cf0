"""The source of a run's outcomes: a machine, the nodes of a fleet, or a recording."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuner.core.candidate import Candidate
from tuner.core.chosen_strategy import ChosenStrategy
from tuner.core.kernel_program import Resources
from tuner.core.machine import Compiler, Machine, Roofline
from tuner.core.problem import Problem
from tuner.core.runs import Baseline, RunSettings
from tuner.core.target import Script
from tuner.core.target_name import TargetName
from tuner.space.feasible_set import FeasibleSet

if TYPE_CHECKING:
    from tuner.core.bench import AbstractBench
    from tuner.workers.in_flight import BenchOrder
    from tuner.workers.limits import Limits
    from tuner.workers.protocol import Factory
    from tuner.workers.services import Environment

Bind = Callable[[Candidate], Script]  # raises CandidateError
Benches = Callable[["tuple[BenchOrder, ...]", "tuple[BenchSettings, ...]"], "tuple[AbstractBench, ...]"]
Seeds = Callable[[Mapping[Candidate, Resources]], tuple[int, ...]]  # ptxas's resources of candidates -> rows


def no_seeds(_resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
    """Returns (): the default of ``Plan.seeds``, for a source of outcomes without a cost model.

    Seeds are rows of the feasible set that a cost model prefers and a run proposes first. A replay has none,
    since it evaluates the search.
    """
    return ()


def always() -> bool:
    """Returns True: the default of ``OutcomeSource.is_timed``, where correct candidates are timed."""
    return True


@dataclass(frozen=True)
class Plan:
    """The feasible set of a run, and the rows of it that are proposed before the sampler's."""

    feasible: FeasibleSet
    first: tuple[int, ...] = ()  # rows to propose before all others
    seeds: Seeds = no_seeds  # returns rows that a cost model prefers, to propose after ``first``


def ignore_report(_who: str) -> None:
    """Does nothing: the default of callbacks that report why a bench waits."""


@dataclass(frozen=True)
class BenchSettings:
    """Settings of a bench that hold for all candidates: threads, compile workers, seed, and callbacks."""

    threads: int
    workers: int  # candidates compiled at once
    seed: int
    report_waiting: Callable[[str], None] = ignore_report  # called with another, timing tuner's description
    run: str = ""  # uuid of the run that the bench is for; "": not in a database
    report_fleet: Callable[[str], None] = (
        ignore_report  # called with the reason why the bench waits for nodes
    )


@dataclass(frozen=True)
class BenchChildren:
    """How to start the child processes that compile and evaluate candidates of one problem, and their limits.

    They run on this machine or on a node of a fleet.
    """

    compiler: "Factory"  # of an AbstractCompiler, in each compile worker
    evaluator: "Factory"  # of an AbstractEvaluator, in the measurement worker
    limits: "Limits"
    environment: "Environment" = ()  # of the measurement worker
    device: str = "cpu"  # on which one tuner at a time may time


@dataclass(frozen=True)
class OutcomeSource:
    """The functions by which a run compiles, verifies and times candidates, or reads their recorded outcomes.

    There is one value per kind of target and one per recording.
    """

    machine: Callable[[TargetName], Machine]  # that code is compiled for
    compiler: Callable[[TargetName], Compiler]
    plan: Callable[[RunSettings, Machine], Plan]  # raises UsageError when nothing can be tried
    # (strategies, problem, threads, machine) -> binder; raises UsageError for an unreadable strategy
    bind: Callable[[tuple[ChosenStrategy, ...], Problem, int, Machine], Bind]
    bench: "Callable[[BenchOrder, BenchSettings], AbstractBench]"
    baseline: Callable[[Problem, int, int], Baseline]  # (problem, threads, seed); raises TunerError
    roofline: Callable[[Problem, int], Roofline]  # (problem, threads); raises TunerError
    # (target, problem, threads) -> child processes of the bench; None: the bench has none
    children: Callable[[TargetName, Problem, int], BenchChildren] | None = None
    # benches of several problems, each with its settings, that share child processes or a connection to a
    # fleet; None: each problem has a ``bench`` of its own
    benches: Benches | None = None
    is_timed: Callable[[], bool] = always  # False: correct candidates are verified, not timed
    needs_local_resources: bool = True  # of this machine: memory for compile workers and arrays; processors
    times_processors: bool = False  # of this machine: other programs on them disturb the times
