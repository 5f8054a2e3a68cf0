"""Random points are feasible, alike for a seed, and counted."""

import numpy as np
import pytest

from benchmarks.gpu_check.gpu_point import feasible_set
from benchmarks.gpu_points import TENSOR_CORES
from benchmarks.machine_code.conflicts import count_conflicts, random_points

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("shared", ["swizzle", "pad"])
def test_random_points_are_feasible_and_laid_out_as_asked(shared: str) -> None:
    drawn = list(random_points(shared, 3, np.random.default_rng(2)))
    assert [point.problem.layout for point in drawn] == ["nn", "nt", "tn"]
    for point in drawn:
        assert dict(point.candidate.choices)["shared"] == shared
        assert feasible_set(point.problem, TENSOR_CORES, point.chip).row_of(point.candidate) is not None
    assert drawn == list(random_points(shared, 3, np.random.default_rng(2)))


def test_points_are_simulated_and_counted() -> None:
    found = count_conflicts("swizzle", 1, seed=3)
    assert (found.points, found.wrong, found.with_conflicts, found.worst_ratio) == (1, 0, 0, 1.0)
