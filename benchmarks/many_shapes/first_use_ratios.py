"""``tuner.matmul`` after first use against numpy's BLAS, interleaved: each weight with a rule without it."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks.many_shapes.timed_cells import Cells
from tuner.analysis.portfolio import choose_portfolio, regret_held_out, regret_in_sample, without
from tuner.analysis.time_matrix import TimeMatrix
from tuner.core.candidate import CPU, TargetName
from tuner.core.interfaces import Effort
from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.core.reliability import NOT_RECORDED
from tuner.models.library.dispatch.matmul import DispatchedMatmul
from tuner.payload.reference import Array
from tuner.results.portfolio import MeasuredCampaign, dispatch_rule
from tuner.runtime import timing
from tuner.targets.registry import real_backends
from tuner.tuning.rule import DispatchRule, StatedRegret, rule_text

SIZE = 8  # configurations of a rule
EFFORT = Effort(budget_s=0.15, min_samples=9, max_samples=60)


def first_use_ratios(matrix: TimeMatrix, cells: Cells, machine: Machine) -> list[dict[str, Any]]:
    """Returns for each problem, never tuned as far as its rule knows, what was chosen and how fast it is.

    A ratio above 1: ``tuner.matmul`` is faster than ``np.matmul``, both called from Python with ``out``.
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder, threadpoolctl.threadpool_limits(1):
        matmul = DispatchedMatmul(real_backends, lambda: Path(folder) / "first-use")
        for weight in dict.fromkeys(problem.sizes[1:] for problem in matrix.problems):
            mine = [row for row, problem in enumerate(matrix.problems) if problem.sizes[1:] == weight]
            rule = Path(folder) / "x".join(map(str, weight))
            others = rule_of_cells(without(matrix, *mine), _without(cells, mine), machine)
            rule.write_text(rule_text(others))
            rows += [_ratio(matrix.problems[row], matmul, rule) for row in mine]
    return rows


def shipped_ratios(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """Returns the same for problems with nothing but what tuner ships: no rule, no database."""
    with tempfile.TemporaryDirectory() as folder, threadpoolctl.threadpool_limits(1):
        matmul = DispatchedMatmul(real_backends, lambda: Path(folder) / "first-use")
        return [_ratio(problem, matmul, None) for problem in problems]


def call_overhead_s() -> float:
    """Returns the seconds by which a call of ``tuner.matmul`` that ends in ``np.matmul`` is longer than that.

    It is the look-up of a known shape, and the count of the call. The least of many samples counts.
    """
    a, b = np.ones((2, 2), np.int64), np.ones((2, 2), np.int64)
    out = np.empty((2, 2), np.int64)
    with tempfile.TemporaryDirectory() as folder:
        matmul = DispatchedMatmul(real_backends, lambda: Path(folder))
        ours, numpys = timing.measure_together(
            (_repeated(lambda: matmul(a, b, out=out)), _repeated(lambda: np.matmul(a, b, out=out))),
            EFFORT,
            np.random.default_rng(0),
        )
    return ours.least_s - numpys.least_s


def _without(cells: Cells, rows: list[int]) -> Cells:
    return tuple(row for place, row in enumerate(cells) if place not in rows)


def rule_of_cells(
    matrix: TimeMatrix, cells: Cells, machine: Machine, size: int = SIZE, threads: int = 1
) -> DispatchRule:
    """Returns the rule of a portfolio of ``size`` configurations of timed cells."""
    target = TargetName.parse(CPU)
    rounds = tuple(tuple(() if cell is None else cell.rounds_s for cell in row) for row in cells)
    compiler = real_backends().target(target).compiler(target)
    trusts = (NOT_RECORDED,) * len(rounds)
    campaign = MeasuredCampaign(matrix, rounds, (None,) * len(rounds), trusts, machine, threads, compiler)
    portfolio = choose_portfolio(matrix, min(size, len(matrix.columns)))
    regret = StatedRegret.of(regret_in_sample(matrix, portfolio), regret_held_out(matrix, size))
    return dispatch_rule(campaign, portfolio, regret)


def _ratio(problem: Problem, matmul: DispatchedMatmul, rule: Path | None) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in (problem.a_shape, problem.b_shape))
    out = np.empty(problem.c_shape, np.float32)
    chosen = matmul.chosen(a, b, rule=rule)

    def ours() -> Array:
        return matmul(a, b, rule=rule, out=out)

    def numpys() -> Array:
        product: Array = np.matmul(a, b, out=out)
        return product

    ours_s, numpy_s = (
        measured.median_s
        for measured in timing.measure_together(
            (_repeated(ours), _repeated(numpys)), EFFORT, np.random.default_rng(0)
        )
    )
    return {
        "shape": problem.shape,
        "source": chosen.source,
        "candidate": None if chosen.candidate is None else chosen.candidate.text,
        "matmul_s": ours_s,
        "numpy_s": numpy_s,
        "ratio": numpy_s / ours_s,
    }


def _repeated(call: Callable[[], Array]) -> Callable[[int], None]:
    def repeat(times: int) -> None:
        for _ in range(times):
            call()

    return repeat
