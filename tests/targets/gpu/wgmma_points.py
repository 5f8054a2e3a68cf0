"""Points of Hopper's strategy, whether a kernel of one is right, and what breaks it."""

import re
from dataclasses import replace
from typing import Any

from benchmarks.gpu_check.gpu_point import GpuPoint, feasible_set
from tests.simulator.ptx.mutations import Edit
from tuner.core.candidate import Candidate
from tuner.core.kernel_program import KernelProgram
from tuner.core.problem import Matmul, Problem
from tuner.simulator.ptx.defects import SimulationError
from tuner.targets.gpu.ptxas import find_ptxas

WAIT = r"mbarrier\.try_wait\.parity\.shared\.b64 P1, [^;]*;"  # of any role
STRATEGY, CHIP = "matmul_gpu_wgmma", "sm_90a"
SMALL: dict[str, Any] = {
    **dict.fromkeys(("block_m", "block_n", "block_k"), 64),
    **dict.fromkeys(("consumers", "group", "tiles", "splits"), 1),
    "stages": 2,
    "cluster": "1x1",
    "bands": "rows",
    "stores": "direct",
}


def point(problem: Problem, **knobs: Any) -> GpuPoint:
    return GpuPoint(problem, Candidate.of(STRATEGY, SMALL | knobs), CHIP)


def outcome(one: GpuPoint, program: KernelProgram, seed: int | None = None) -> tuple[bool, str]:
    """Returns whether all of C is right and nothing races, and what is wrong otherwise."""
    try:
        verdict, worst, simulations = one.run(program, schedule_seed=seed)
    except SimulationError as error:
        return False, error.reason
    hazards = [str(hazard) for simulation in simulations for hazard in simulation.hazards]
    return verdict.max_error <= 1.0 and not hazards, "; ".join([worst, *hazards])


LARGE = point(Matmul(4096, 4096, 4096, "f16"), block_m=128, block_n=256, stages=4, consumers=2, group=8)


def check(one: GpuPoint, seed: int | None) -> None:
    """Asserts that a point is feasible, right and free of races, in a random order with a seed."""
    assert feasible_set(one.problem, STRATEGY, CHIP).row_of(one.candidate) is not None
    is_right, why = outcome(one, one.program(), seed)
    assert is_right, why


def is_noticed(one: GpuPoint, healthy: KernelProgram, edit: Edit) -> bool:
    """Tells whether a broken kernel of a point is wrong or unsafe; its text must differ."""
    ptx = edit(healthy.ptx)
    assert ptx != healthy.ptx
    is_right, _ = outcome(one, replace(healthy, ptx=ptx))
    return not is_right


def require_large_tile_kept(program: KernelProgram) -> None:
    """Asserts that a program's matmul has the large tile's registers, neither spilled nor serialized."""
    ptxas = find_ptxas()
    if ptxas is not None:
        found = next(each for each in ptxas.assemble(program).resources if each.kernel == "matmul_kernel")
        assert (found.spilled_bytes, found.registers, found.is_serialized) == (0, 168, False)


def only(number: int, pattern: str, text: str) -> Edit:
    """Returns the edit of one match, counted from 0, or from the end with a negative number."""

    def edit(ptx: str) -> str:
        match = list(re.finditer(pattern, ptx))[number]
        return ptx[: match.start()] + match.expand(text) + ptx[match.end() :]

    return edit


def by_name(each: object) -> str:
    """Names a parameter of a test: a point by its problem."""
    return each.problem.key if isinstance(each, GpuPoint) else str(each)
