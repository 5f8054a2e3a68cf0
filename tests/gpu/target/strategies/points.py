"""Points of the GPU strategies, small where knobs are not given, and checks of their kernels."""

import functools
import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from tests.gpu.ptxsim.ptx.matmuls import Edit
from tests.gpu.target.strategies.three_products import Floats
from tests.support.gpu_point import GpuPoint, gpu_variables
from tests.support.gpu_points import CUDA_CORES, TENSOR_CORES, USUAL
from tests.support.gpu_points import HOPPER as HOPPER_CORES
from tuner.core.candidate import Candidate
from tuner.core.compiled_code import KernelCode
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.gpu.cost_model.untimed import is_serialized
from tuner.gpu.ptxsim.launch import Simulation
from tuner.gpu.ptxsim.ptx.defects import SimulationError
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.gpu.target.compiler import find_ptxas
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.search_space import SearchSpace

Seed = int | None
Simulations = tuple[Simulation, ...]
NAIVE, SIMT, MMA_SYNC, WGMMA = "matmul_gpu_naive", CUDA_CORES, TENSOR_CORES, HOPPER_CORES
HOPPER = "sm_90a"
SIMT_LARGE, WGMMA_LARGE = USUAL[SIMT], USUAL[WGMMA]
SIMT_SMALL = SIMT_LARGE | {"block_m": 32, "block_n": 64, "block_k": 8, "split_m": 1}
MMA_SYNC_SMALL = USUAL[MMA_SYNC] | {"block_m": 64, "block_n": 64, "depth": 2, "prefetch": 0}
WGMMA_SMALL = WGMMA_LARGE | {"block_m": 64, "block_n": 64, "stages": 2, "consumers": 1, "group": 1}


def naive(problem: Problem, block_m: int = 1, block_n: int = 32) -> GpuPoint:
    return GpuPoint(problem, Candidate.of(NAIVE, {"block_m": block_m, "block_n": block_n}))


def simt(problem: Problem, chip: str = "sm_90", **knobs: Any) -> GpuPoint:
    """Returns a small point with copies as wide as the space allows."""
    for vector_a, vector_b in itertools.product((4, 2, 1), repeat=2):
        vectors = {"vector_a": vector_a, "vector_b": vector_b}
        one = GpuPoint(problem, Candidate.of(SIMT, SIMT_SMALL | knobs | vectors), chip)
        if is_feasible(one):
            return one
    raise LookupError(f"{problem.key}: the space allows no point with {knobs}")


def mma_sync(problem: Problem, chip: str = "sm_90", **knobs: Any) -> GpuPoint:
    return GpuPoint(problem, Candidate.of(MMA_SYNC, MMA_SYNC_SMALL | knobs), chip)


def wgmma(problem: Problem, **knobs: Any) -> GpuPoint:
    return GpuPoint(problem, Candidate.of(WGMMA, WGMMA_SMALL | knobs), HOPPER)


def large_wgmma(problem: Problem | None = None, **knobs: Any) -> GpuPoint:
    return wgmma(problem or Matmul(4096, 4096, 4096, "f16"), **(WGMMA_LARGE | knobs))


def is_feasible(one: GpuPoint) -> bool:
    """Returns whether the default search space allows a point, without enumerating the space."""
    space = space_of(one.problem, one.candidate.strategy, one.chip)
    return space.contains(one.candidate) and space.violated(one.candidate) is None


def space_of(problem: Problem, strategy: str, chip: str = "sm_90") -> SearchSpace:
    file = load_space_file(default_space_file())
    (space,) = spaces_for(file, problem, "ptx", gpu_variables(problem, chip), (strategy,))
    return space


@functools.cache
def compiled(one: GpuPoint) -> KernelCode:
    """Returns the program of a point, which each process of the tests compiles once."""
    return one.program()


def outcome(one: GpuPoint, program: KernelCode, seed: int | None = None) -> tuple[bool, str]:
    """Returns whether all of C is right without races, and otherwise the error."""
    try:
        verdict, worst, simulations = one.run(program, schedule_seed=seed)
    except SimulationError as error:
        return False, error.reason
    hazards = [str(hazard) for simulation in simulations for hazard in simulation.hazards]
    return verdict.max_error <= 1.0 and not hazards, "; ".join([worst, *hazards])


def require_right(one: GpuPoint, program: KernelCode | None = None, seed: Seed = None) -> Simulations:
    """Asserts that all of C is right without races, in a random order of threads with a seed."""
    verdict, worst, simulations = one.run(program or compiled(one), schedule_seed=seed)
    assert verdict.max_error <= 1.0, f"{by_name(one)}: {worst}"
    assert [simulation.hazards for simulation in simulations] == [()] * len(simulations), by_name(one)
    return simulations


def is_noticed(one: GpuPoint, edit: Edit) -> bool:
    """Returns whether a broken kernel of a point is wrong or unsafe; its text must differ."""
    healthy = compiled(one)
    ptx = edit(healthy.text)
    assert ptx != healthy.text
    is_right, _ = outcome(one, replace(healthy, text=ptx))
    return not is_right


def require_large_tile_kept(program: KernelCode) -> None:
    """Asserts that Hopper's large tile keeps its registers, neither spilled nor serialized."""
    ptxas = find_ptxas()
    if ptxas is not None:
        found = next(each for each in ptxas.assemble(program).resources if each.kernel == "matmul_kernel")
        assert (found.spilled_bytes, found.registers, is_serialized(found)) == (0, 168, False)


def by_name(each: object) -> str:
    """Names a parameter of a test: a point by its problem and its knobs."""
    return f"{each.problem.key} {each.candidate.text}" if isinstance(each, GpuPoint) else str(each)


def stored(a: Floats, b: Floats, layout: str) -> dict[str, Floats]:
    """Returns A and B as they lie in memory, and C full of NaN."""
    c = np.full((len(a), b.shape[1]), np.nan, np.float32)
    in_memory = {"a": a.T if layout == "tn" else a, "b": b.T if layout == "nt" else b, "c": c}
    return {name: np.ascontiguousarray(array) for name, array in in_memory.items()}


def simulated_draw(one: GpuPoint) -> tuple[Floats, Floats, Floats]:
    """Returns random A and B, and C as the kernel of a point computes it, without hazards and conflicts."""
    assert is_feasible(one)
    m, n, k = one.problem.sizes
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    arrays = stored(a, b, one.problem.layout)
    simulations = simulate_program(compiled(one), arrays, schedule_seed=1)
    assert {simulation.hazards for simulation in simulations} == {()}
    assert {simulation.conflict_ratio for simulation in simulations} == {1.0}
    return a, b, arrays["c"]
