import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.many_shapes import __main__ as benchmark
from benchmarks.many_shapes.figures import figures
from benchmarks.many_shapes.pool import Sizes
from benchmarks.many_shapes.timed_cells import Cell
from tests.models.library.dispatch.rules import configurations, machine, space
from tuner.analysis.scheduler import ColumnPool
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import candidate_document
from tuner.core.matmul import Matmul
from tuner.tuning.pool import PoolProblem, projected_pool

SIZES = Sizes(weights=((64, 48), (48, 96)), tokens=(4, 8, 16), columns=2)


@pytest.fixture(scope="module")
def pool() -> ColumnPool:
    of_pool = tuple(PoolProblem(problem, 1, space().spaces(problem)) for problem in SIZES.problems)
    return projected_pool(of_pool, tuple(each.candidate for each in configurations()), machine(), threads=1)


def matrix_of(pool: ColumnPool, times: Any) -> TimeMatrix:
    applies = tuple(tuple(each is not None for each in row) for row in pool.candidates)
    return TimeMatrix(pool.problems, pool.counts, pool.columns, times, applies, pool.costs)


def test_a_problem_held_out_is_evaluated_by_its_own_times_and_chosen_by_the_others(pool: ColumnPool) -> None:
    """The first configuration is twice as fast everywhere but on m = 16, where it is twice as slow."""
    times = tuple((2e-6, 1e-6) if problem.sizes[0] == 16 else (1e-6, 2e-6) for problem in pool.problems)
    found = figures(matrix_of(pool, times), pool)
    unmeasured, measured = found["m_held_out"]["nothing measured"], found["m_held_out"]["all of K=8 measured"]
    assert (unmeasured["worst"], unmeasured["geomean"]) == (0.5, pytest.approx(0.5 ** (1 / 3)))
    assert measured == {"geomean": pytest.approx(1.0), "worst": 1.0}
    assert found["portfolio"]["K=1"]["worst"] == 0.5
    assert found["portfolio"]["K=2"]["geomean"] == pytest.approx(1.0)
    assert found["scheduler"]["50% total"] <= 1.0
    assert SIZES.problems[:3] == (Matmul(4, 64, 48), Matmul(8, 64, 48), Matmul(16, 64, 48))


def test_the_figures_follow_from_an_earlier_document(pool: ColumnPool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)

    def cell() -> dict[str, Any]:
        return {"rounds_s": list(rng.uniform(1e-6, 2e-6, 2)), "code": "c", "failure": ""}

    rows: list[Any] = [{"shape": problem.shape, "cells": [cell(), cell()]} for problem in pool.problems]
    document = {"settings": {"columns": [candidate_document(each) for each in pool.columns]}, "rows": rows}
    file = tmp_path / "many_shapes.json"
    file.write_text(json.dumps(document))
    again, cells = benchmark.read_document(file, machine())
    assert (again.columns, again.candidates) == (pool.columns, pool.candidates)
    first = Cell(tuple(rows[0]["cells"][0]["rounds_s"]), "c")
    assert (cells[0][0], benchmark.matrix_of(again, cells).times_s[0][0]) == (first, first.time_s)
