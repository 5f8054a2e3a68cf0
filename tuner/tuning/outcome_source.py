"""Where the outcomes of a run come from: a machine, the nodes of a fleet, or a recording."""

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
Seeds = Callable[[Mapping[Candidate, Resources]], tuple[int, ...]]  # what ptxas told of candidates -> rows


def no_seeds(_resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
    """Returns nothing: a replay judges a search, not what is known of a machine."""
    return ()


def always() -> bool:
    """Returns True: correct candidates are timed."""
    return True


@dataclass(frozen=True)
class Plan:
    """What a run may try."""

    feasible: FeasibleSet
    first: tuple[int, ...] = ()  # rows to propose before any other
    seeds: Seeds = no_seeds  # rows that a model of the machine speaks for, to propose after these


def no_arguments(_who: str) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class BenchSettings:
    """How a bench works, whatever it is ordered."""

    threads: int
    workers: int  # candidates compiled at once
    seed: int
    report_waiting: Callable[[str], None] = no_arguments  # for another tuner that times: its words
    run: str = ""  # uuid of the run that it is for; "" of what no database has
    report_fleet: Callable[[str], None] = no_arguments  # why it waits for nodes that tell nothing


@dataclass(frozen=True)
class BenchChildren:
    """Which child processes work for the candidates of one problem, here or on a node of a fleet."""

    compiler: "Factory"  # of an AbstractCompiler, in each child that compiles
    evaluator: "Factory"  # of an AbstractEvaluator, in the child that owns the machine
    limits: "Limits"
    environment: "Environment" = ()  # of the child that evaluates
    device: str = "cpu"  # that is timed, by one tuner at a time


@dataclass(frozen=True)
class OutcomeSource:
    """All that a run asks for its outcomes. Each kind of target has one; a recording is one."""

    machine: Callable[[TargetName], Machine]  # that code is made for
    compiler: Callable[[TargetName], Compiler]
    plan: Callable[[RunSettings, Machine], Plan]  # raises UsageError when nothing can be tried
    # (strategies, problem, threads, machine) -> what binds; raises UsageError for a script that is no such
    bind: Callable[[tuple[ChosenStrategy, ...], Problem, int, Machine], Bind]
    bench: "Callable[[BenchOrder, BenchSettings], AbstractBench]"
    baseline: Callable[[Problem, int, int], Baseline]  # (problem, threads, seed); raises TunerError
    roofline: Callable[[Problem, int], Roofline]  # (problem, threads); raises TunerError
    # (target, problem, threads) -> what its bench is made of; None: no child works for it
    children: Callable[[TargetName, Problem, int], BenchChildren] | None = None
    is_timed: Callable[[], bool] = always  # False: a correct candidate is verified, and that is all
    needs_local_resources: bool = True  # of this machine: for processes that compile, arrays and threads
    times_processors: bool = False  # of this machine: whatever else runs on them shows in the times
