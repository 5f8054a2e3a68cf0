"""Small points of every GPU strategy of the default search space, to compare a GPU with its simulator."""

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tests.support.gpu_point import GpuPoint, feasible_set, gpu_variables
from tuner.core.candidate import TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.dtypes import narrow_output, output_names
from tuner.core.errors import CandidateError
from tuner.core.matmul import GroupedMatmul, Matmul
from tuner.core.problem import (
    BATCH_MATMUL,
    GROUPED,
    Problem,
    epilogues_of,
)
from tuner.gpu.target.compiler import find_ptxas, refusal_of
from tuner.models.request import program_support
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.entries import StrategyEntry
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.targets.registry import real_backends

# (m, n, k): whole tiles, none, more than one block of each kind, one row, long K
SIZES = ((128, 128, 64), (67, 130, 91), (193, 66, 160), (1, 97, 33), (64, 72, 264), (136, 40, 24))
BATCH_ROUND = 1  # whose problems are of two matrices
GROUPED_CASES = (  # by round
    GroupedMatmul(4, 100, 130, 96, layout="nt"),
    GroupedMatmul(12, 9, 72, 80, "f16", output="f16"),
    GroupedMatmul(3, 150, 65, 33),
)
ROUNDS = len(GROUPED_CASES)  # of sizes, for each dtype and layout
DRAWS = 8  # points that are tried until one can be launched


@dataclass(frozen=True)
class Case:
    """One problem for one strategy; its point is drawn on demand."""

    strategy: str
    problem: Problem

    @property
    def name(self) -> str:
        """Returns a unique name."""
        return f"{self.strategy} {self.problem.key}"


def gpu_strategies() -> tuple[StrategyEntry, ...]:
    """Returns the strategies of the default search space that make PTX."""
    entries = load_space_file(default_space_file()).strategies
    return tuple(entry for entry in entries if "ptx" in entry.isas)


def cases(chip: str, rounds: int = ROUNDS) -> tuple[Case, ...]:
    """Returns cases of all strategies of a chip, round-robin: each prefix has cases of many strategies."""
    columns = [list(_cases_of(entry, chip, rounds)) for entry in gpu_strategies()]
    rows = itertools.zip_longest(*columns)
    return tuple(dict.fromkeys(case for row in rows for case in row if case is not None))


def _cases_of(entry: StrategyEntry, chip: str, rounds: int) -> Iterator[Case]:
    """Yields problems of each dtype and layout, with rows of whole 16 bytes where no others are allowed."""
    kinds = [(dtype, layout) for layout in entry.layouts for dtype in entry.dtypes]
    for number in range(rounds):
        for place, (dtype, layout) in enumerate(kinds):
            sizes = SIZES[(number * len(kinds) + place) % len(SIZES)]
            known = set(epilogues_of(dtype))
            epilogues = [name for name in entry.epilogues if name in known]
            epilogue = epilogues[(number + place) % len(epilogues)]
            outputs = output_names(dtype)
            output = narrow_output(dtype, outputs[(number + place) % len(outputs)])
            for multiple in (1, 8, 16):
                m, n, k = (-(-size // multiple) * multiple for size in sizes)
                problem = Matmul(m, n, k, dtype, layout, epilogue, output)
                if number == BATCH_ROUND:
                    problem = replace(problem, operation=BATCH_MATMUL, batch=2)
                if is_allowed(entry, problem, chip):
                    yield Case(entry.name, problem)
                    break
        if GROUPED in entry.operations:
            yield Case(entry.name, GROUPED_CASES[number])


def is_allowed(entry: StrategyEntry, problem: Problem, chip: str) -> bool:
    """Returns whether the constraints and the preferences that name no knob hold."""
    known = dict(gpu_variables(problem, chip))
    free = (each for each in (*entry.constraints, *entry.preferences) if each.names <= known.keys())
    return all(each.evaluate(known) for each in free)


def built(case: Case, target: TargetName) -> tuple[GpuPoint, KernelCode]:
    """Draws and compiles a preferred point that can be launched: to machine code where there is ptxas.

    Raises CandidateError for the last of several points that failed, UsageError for a space without points.
    """
    allowed = _preferred(case, target)
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    for _ in range(DRAWS):
        point = GpuPoint(case.problem, allowed.candidate(int(rng.integers(allowed.rows))), target.detail)
        try:
            return point, compiled(point, target)
        except CandidateError as error:
            last = error
    raise last


def first_built(case: Case, target: TargetName) -> tuple[GpuPoint, KernelCode]:
    """Compiles the point of the search space that is tried first. Raises CandidateError, UsageError."""
    allowed = _preferred(case, target)
    entry = next(entry for entry in gpu_strategies() if entry.name == case.strategy)
    wanted = next((point for point in entry.first_on("") if allowed.row_of(point) is not None), None)
    point = GpuPoint(case.problem, wanted or allowed.candidate(0), target.detail)
    return point, compiled(point, target)


def _preferred(case: Case, target: TargetName) -> FeasibleSet:
    allowed = feasible_set(case.problem, case.strategy, target.detail)
    return allowed.part(allowed.is_preferred) if allowed.is_preferred.any() else allowed


def compiled(point: GpuPoint, target: TargetName) -> KernelCode:
    """Compiles one point. Raises CandidateError, also for a program that cannot be launched."""
    program = point.program()
    if program_support(target, real_backends()).is_simulated:
        return program
    ptxas = find_ptxas()
    if ptxas is not None:
        program = ptxas.assemble(program)
    refusal = refusal_of(program)
    if refusal is not None:
        raise CandidateError(refusal.stage, refusal.reason)
    return program
