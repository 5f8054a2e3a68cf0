"""How often random points of the tensor-core strategy have bank conflicts, by the simulator's count."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.machine_code.tiles import CHIPS
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.support.gpu_points import TENSOR_CORES
from tuner.core.matmul import Matmul
from tuner.core.problem import LAYOUTS, Problem

DTYPES = ("f16", "bf16", "tf32")
LONGEST = 120  # of a random problem's sides
LARGEST = 128 * 256  # sums of a block: larger ones take seconds to simulate


@dataclass(frozen=True)
class ConflictCount:
    """The simulator's counts over random points."""

    shared: str  # "swizzle" or "pad"
    points: int
    wrong: int  # of wrong numbers, or with a hazard
    with_conflicts: int
    worst_ratio: float  # time in shared memory over that without conflicts


def count_conflicts(shared: str, count: int, seed: int) -> ConflictCount:
    """Simulates ``count`` random feasible points whose shared memory has one layout."""
    ratios, wrong = [], 0
    for point in random_points(shared, count, np.random.default_rng(seed)):
        verdict, _, simulations = point.run(point.program())
        ratios.append(max(each.conflict_ratio for each in simulations))
        wrong += not verdict.max_error <= 1.0 or any(each.hazards for each in simulations)
    return ConflictCount(shared, count, wrong, sum(ratio > 1.0 for ratio in ratios), max(ratios, default=1.0))


def random_points(shared: str, count: int, rng: np.random.Generator) -> Iterator[GpuPoint]:
    """Draws feasible points of random problems, dtypes and layouts round-robin."""
    kinds = [(dtype, layout) for dtype in DTYPES for layout in LAYOUTS]
    for number in range(count):
        problem = _random_problem(*kinds[number % len(kinds)], rng)
        chip = str(rng.choice(CHIPS))
        allowed = feasible_set(problem, TENSOR_CORES, chip)
        while True:
            point = GpuPoint(problem, allowed.candidate(int(rng.integers(allowed.rows))), chip)
            knobs = dict(point.candidate.choices)
            if knobs["shared"] == shared and int(knobs["block_m"]) * int(knobs["block_n"]) <= LARGEST:
                break
        yield point


def _random_problem(dtype: str, layout: str, rng: np.random.Generator) -> Problem:
    """Returns a problem of any sizes, or of multiples of 8."""
    m, n, k = (int(size) for size in rng.integers(1, LONGEST, 3))
    if rng.random() < 0.5:
        m, n, k = (-(-size // 8) * 8 for size in (m, n, k))
    return Matmul(m, n, k, dtype, layout, str(rng.choice(["none", "bias_relu"])))
