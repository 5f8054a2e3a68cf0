"""What a run is made of, as functions: the real ones import what is heavy when they are called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tuner.bench import AbstractBench
from tuner.feasible import FeasibleSet
from tuner.kernel import KernelProgram, Resources
from tuner.machine import Compiler, Machine, Roofline
from tuner.problem import Problem
from tuner.runs import RunSettings, Vendor
from tuner.space import Candidate
from tuner.target import Script
from tuner.target_name import TargetName
from tuner.workers.ticket import Order

Bind = Callable[[Candidate], Script]  # raises CandidateError
Seeds = Callable[[Mapping[Candidate, Resources]], tuple[int, ...]]  # what ptxas told of candidates -> rows


def no_seeds(_resources: Mapping[Candidate, Resources]) -> tuple[int, ...]:
    """Returns nothing: a replay judges a search, not what is known of a machine."""
    return ()


@dataclass(frozen=True)
class TargetStatus:
    """Whether this machine can compile for a target and run on it."""

    name: str
    is_available: bool  # candidates are judged here, not only compiled
    reason: str  # why, or why not
    is_timed: bool = True  # here; False: nothing is ranked
    can_compile: bool = False  # beside ``is_available``: candidates get as far as their code
    chip: str = ""  # of the GPU that candidates run on here


@dataclass(frozen=True)
class Plan:
    """What a run may try."""

    feasible: FeasibleSet
    first: tuple[int, ...] = ()  # rows to propose before any other
    seeds: Seeds = no_seeds  # rows that a model of the machine speaks for, to propose after these


@dataclass(frozen=True)
class BenchSettings:
    """How a bench works, whatever it is ordered."""

    threads: int
    workers: int  # candidates compiled at once
    seed: int


@dataclass(frozen=True)
class Composition:
    """The parts that tests replace by ones without compiler and clock."""

    machine: Callable[[], Machine]  # this one
    target_machine: Callable[[str], Machine]  # that code for the target named is made for
    load_average: Callable[[], float | None]  # of the last minute
    compiler: Callable[[str], Compiler]  # of the target named
    plan: Callable[[RunSettings, Machine], Plan]  # raises UsageError when nothing can be tried
    bind: Callable[[RunSettings, Machine], Bind]
    bench: Callable[[Order, BenchSettings], AbstractBench]
    vendor: Callable[[Problem, int, int, str], Vendor]  # (problem, threads, seed, target); raises TunerError
    roofline: Callable[[Problem, int, str], Roofline]  # (problem, threads, target); raises TunerError
    targets: Callable[[], tuple[TargetStatus, ...]]
    source: Callable[[str, Problem, str], str]  # (target, problem, script) -> payload of the script
    apply: Callable[[str, str], str]  # (script, payload) -> payload after it; raises TunerError
    load: Callable[[Problem, str, int], Callable[..., object]]  # (problem, script, threads) of the CPU
    load_program: Callable[[Problem, KernelProgram], Callable[..., object]]  # of the GPU here

    def is_timed(self, target: str) -> bool:
        """Tells whether candidates of a target get a time; unknown ones are taken for such."""
        kind = TargetName.parse(target).kind
        return all(status.is_timed for status in self.targets() if status.name == kind)
