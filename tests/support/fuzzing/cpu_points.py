"""Random feasible points of the shipped CPU strategies, for tests and for longer fuzzing."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tuner.core.candidate import Candidate, Value
from tuner.core.dtypes import NARROW_OUTPUTS, natural_output
from tuner.core.errors import UsageError
from tuner.core.interfaces import Script
from tuner.core.machine import Machine
from tuner.core.problem import (
    BATCH_MATMUL,
    LAYOUTS,
    MATMUL,
    Problem,
    epilogues_of,
)
from tuner.core.problem_classes import MatmulProblem
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.entries import StrategyEntry
from tuner.space.file.reading import SpaceFile, load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, load_strategy

SIZES = (
    1,
    2,
    3,
    7,
    8,
    13,
    16,
    17,
    31,
    32,
    64,
    97,
    113,
    127,
    130,
)  # units, primes, multiples of tiles and neighbours of those
BATCH_SHARE = 0.25  # of the problems are batches
BATCH_LIMIT = 6  # matrices, not included
SHAPES_TRIED = 200  # until the strategy has anything for one


@dataclass(frozen=True)
class KernelKind:
    """A kind of kernel of one strategy: everything of a problem but its size."""

    strategy: str
    dtype: str
    layout: str
    epilogue: str
    threads: int
    output: str = ""  # type of C where it is narrower than that of the sums

    def problem(self, sizes: tuple[int, int, int]) -> Problem:
        """Returns the problem of this kind at one size."""
        return MatmulProblem("matmul", sizes, self.dtype, self.layout, self.epilogue, self.output)


@dataclass(frozen=True)
class CpuPoint:
    """One kernel to check."""

    problem: Problem
    threads: int
    candidate: Candidate

    @property
    def text(self) -> str:
        """Returns one line that identifies the point."""
        return f"{self.problem.key} threads={self.threads} {self.candidate.text}"


class CpuPoints:
    """Draws points that the default search space allows on one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._file: SpaceFile = load_space_file(default_space_file())

    def kinds(self, threads: int) -> tuple[KernelKind, ...]:
        """Returns every strategy x dtype x layout x epilogue that the space file allows on this machine."""
        return tuple(
            KernelKind(entry.name, dtype, layout, epilogue, threads, output)
            for entry in self._file.strategies
            if self._machine.isa in entry.isas and MATMUL in entry.operations
            for dtype in entry.dtypes
            for output in ("", *NARROW_OUTPUTS.get(dtype, ()))
            if self._has_what_it_needs(entry, dtype, output)
            for layout in LAYOUTS
            for epilogue in epilogues_of(dtype)
            if layout in entry.layouts and epilogue in entry.epilogues
        )

    def draw(self, kind: KernelKind, rng: np.random.Generator, largest: int = 130) -> CpuPoint:
        """Returns a random feasible candidate on a random shape that has one."""
        for sizes in _shapes(rng, largest):
            problem = kind.problem(sizes)
            if rng.random() < BATCH_SHARE:
                problem = replace(problem, operation=BATCH_MATMUL, batch=int(rng.integers(1, BATCH_LIMIT)))
            with contextlib.suppress(LookupError):
                return CpuPoint(problem, kind.threads, self.draw_again(kind, problem, rng))
        raise LookupError(f"{kind}: nothing allowed on any of {SHAPES_TRIED} shapes")

    def draw_again(self, kind: KernelKind, problem: Problem, rng: np.random.Generator) -> Candidate:
        """Returns a random feasible candidate. Raises LookupError for a problem without one."""
        feasible = self._feasible(kind, problem)
        if feasible is None:
            raise LookupError(f"{kind}: nothing allowed for {problem.key}")
        return feasible.candidate(int(rng.integers(feasible.rows)))

    def binder(self, problem: Problem, threads: int, strategy: str) -> Binder:
        """Returns the binder of one strategy for a problem."""
        return Binder((load_strategy(strategy),), problem, self._variables(problem, threads), threads)

    def bind(self, point: CpuPoint) -> Script:
        """Returns the point's script. Raises CandidateError."""
        return self.binder(point.problem, point.threads, point.candidate.strategy).bind(point.candidate)

    def _has_what_it_needs(self, entry: StrategyEntry, dtype: str, output: str) -> bool:
        """Returns False where a constraint on machine and element types alone excludes the strategy."""
        types = {"dtype": dtype, "output": output or natural_output(dtype)}
        limits: dict[str, Value] = {**dict(self._machine.limits()), **types}
        return all(each.evaluate(limits) for each in entry.constraints if each.names <= limits.keys())

    def _feasible(self, kind: KernelKind, problem: Problem) -> FeasibleSet | None:
        variables = self._variables(problem, kind.threads)
        try:
            return FeasibleSet.of(
                spaces_for(self._file, problem, self._machine.isa, variables, (kind.strategy,))
            )
        except UsageError:
            return None

    def _variables(self, problem: Problem, threads: int) -> tuple[tuple[str, Value], ...]:
        return (*problem.variables(), *self._machine.limits(), ("threads", threads))


def emulated_machine() -> Machine:
    """Returns this machine with the instruction sets that its vector code can stand for: AMX and VNNI."""
    here = describe_machine()
    return replace(here, isa="avx512", has_vnni=True, has_amx_bf16=True, has_amx_int8=True, has_bf16=False)


def _shapes(rng: np.random.Generator, largest: int) -> Iterator[tuple[int, int, int]]:
    for _ in range(SHAPES_TRIED):
        yield sizes_of(rng, largest)


def sizes_of(rng: np.random.Generator, largest: int) -> tuple[int, int, int]:
    """Returns three random sizes, half of them from SIZES."""
    m, n, k = (_size(rng, largest) for _ in range(3))
    return m, n, k


def _size(rng: np.random.Generator, largest: int) -> int:
    if rng.random() < 0.5:
        return int(rng.choice(SIZES))
    return int(rng.integers(1, largest + 1))
