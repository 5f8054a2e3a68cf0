"""What a run is made of, as functions: the real ones import what is heavy when they are called."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.bench import AbstractBench
from tuner.feasible import FeasibleSet
from tuner.machine import Compiler, Machine, Roofline
from tuner.problem import Problem
from tuner.runs import RunSettings, Vendor
from tuner.space import Candidate
from tuner.target import Script
from tuner.workers.ticket import Order

Bind = Callable[[Candidate], Script]  # raises CandidateError


@dataclass(frozen=True)
class TargetStatus:
    """Whether this machine can compile for a target and run on it."""

    name: str
    is_available: bool
    reason: str  # why, or why not


@dataclass(frozen=True)
class Plan:
    """What a run may try."""

    feasible: FeasibleSet
    first: tuple[int, ...] = ()  # rows to propose before any other


@dataclass(frozen=True)
class BenchSettings:
    """How a bench works, whatever it is ordered."""

    threads: int
    workers: int  # candidates compiled at once
    seed: int


@dataclass(frozen=True)
class Composition:
    """The parts that tests replace by ones without compiler and clock."""

    machine: Callable[[], Machine]
    load_average: Callable[[], float | None]  # of the last minute
    compiler: Callable[[str], Compiler]  # of the target named
    plan: Callable[[RunSettings, Machine], Plan]  # raises UsageError when nothing can be tried
    bind: Callable[[RunSettings, Machine], Bind]
    bench: Callable[[Order, BenchSettings], AbstractBench]
    vendor: Callable[[Problem, int, int], Vendor]  # (problem, threads, seed); raises TunerError
    roofline: Callable[[Problem, int], Roofline]  # (problem, threads); raises TunerError
    targets: Callable[[], tuple[TargetStatus, ...]]
    source: Callable[[Problem, str], str]  # (problem, script) -> payload that the script is for
    apply: Callable[[str, str], str]  # (script, payload) -> payload after it; raises TunerError
    load: Callable[[Problem, str, int], Callable[..., object]]  # (problem, script, threads)
