"""Result of the PTX simulator for one point of a GPU strategy, under several schedules."""

from dataclasses import dataclass

from tests.support.gpu_point import GpuPoint
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError
from tuner.gpu.ptxsim.ptx.defects import SimulationError

Schedules = tuple[int | None, ...]  # seeds of random orders of threads; None: the fixed order


@dataclass(frozen=True)
class GpuOutcome:
    """The outcome of one point."""

    point: GpuPoint
    max_error: float  # in tolerances, the largest of all schedules
    conflict_ratio: float  # time in shared memory over that without bank conflicts
    failures: tuple[str, ...]  # () for a point that is right and free of races

    @property
    def is_swizzled(self) -> bool:
        """True if tiles are laid out in shared memory so that no access may have a bank conflict."""
        return dict(self.point.candidate.choices).get("shared") == "swizzle"

    @property
    def is_right(self) -> bool:
        """True if the point has no failure."""
        return not self.failures


def check(point: GpuPoint, schedules: Schedules, seed: int) -> GpuOutcome:
    """Compiles the point to PTX and simulates all blocks under each schedule."""
    try:
        program = point.program()
    except CandidateError as error:
        return GpuOutcome(point, float("nan"), 1.0, (f"{error.stage.value}: {error.reason}",))
    return simulate(point, program, schedules, seed)


def simulate(point: GpuPoint, program: KernelCode, schedules: Schedules, seed: int) -> GpuOutcome:
    """Simulates a program of the point under each schedule; C starts as NaN."""
    failures, errors, ratios = [], [0.0], [1.0]
    for schedule in schedules:
        try:
            verdict, worst, simulations = point.run(program, seed, schedule)
        except SimulationError as error:
            failures.append(f"schedule {schedule}: {error}")
            continue
        errors.append(verdict.max_error)
        ratios += [each.conflict_ratio for each in simulations]
        if not verdict.max_error <= 1.0:
            failures.append(f"schedule {schedule}: {worst}")
        races = [str(race) for each in simulations for race in each.races]
        failures += [f"schedule {schedule}: {race}" for race in dict.fromkeys(races)]
    outcome = GpuOutcome(point, max(errors), max(ratios), tuple(failures))
    if outcome.is_swizzled and outcome.conflict_ratio > 1.0:
        reason = f"found bank conflicts, {outcome.conflict_ratio:.3f} times the time, allowed none"
        return GpuOutcome(point, outcome.max_error, outcome.conflict_ratio, (*failures, reason))
    return outcome
