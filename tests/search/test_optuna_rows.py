import importlib.util
import statistics

import numpy as np
import optuna
import pytest

from tests.search.tasks import grid, line, rng, task, tell
from tuner.core.errors import UsageError
from tuner.search.method import SearchTask
from tuner.search.optuna_samplers import KINDS, SOURCES_MIN, OptunaRows
from tuner.search.samplers import OPTUNA_NAMES


def installed(name: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in KINDS[name].packages)


NEEDS = {
    name: pytest.mark.skipif(not installed(name), reason=f"needs {KINDS[name].packages}") for name in KINDS
}
every_kind = pytest.mark.parametrize("name", [pytest.param(name, marks=mark) for name, mark in NEEDS.items()])


def seconds(row: int) -> float:
    a, b = divmod(row, 16)
    return 1.0 + (a - 11) ** 2 + (b - 4) ** 2


def search(name: str, seed: int, trials: int) -> SearchTask:
    square = task(grid("ab", 16), seed=seed)
    method = OptunaRows(square, name)
    for number in range(trials):
        row = method.choose(np.random.default_rng((seed, number)))
        tell(square, (row, seconds(row)))
    return square


def test_failures_break_a_constraint_and_the_names_offered_are_those_that_there_are() -> None:
    square = task(grid("ab", 4))
    tell(square, (0, 2.0), (5, None))
    worked, failed = OptunaRows(square, "tpe").history()
    assert (worked.value, worked.system_attrs["constraints"]) == (2.0, [-1.0])
    assert (failed.value, failed.system_attrs["constraints"]) == (2.0, [1.0])
    assert worked.state == failed.state == optuna.trial.TrialState.COMPLETE
    assert set(OPTUNA_NAMES) == set(KINDS)


@every_kind
def test_proposals_depend_on_seed_number_and_history_alone(name: str) -> None:
    square = search(name, seed=3, trials=14)
    fresh, again = (OptunaRows(square, name).choose(rng(9)) for _ in range(2))
    assert fresh == again
    assert square.pool.unseen[fresh]
    several = task(grid("ab", 4, "s"), line(9, "t"))
    method = OptunaRows(several, name)
    for number in range(SOURCES_MIN + 3):
        row = method.choose(np.random.default_rng((0, number)))
        tell(several, (row, None if number % 3 else 1.0 + row))
    assert len(several.pool.order) == SOURCES_MIN + 3


LEARNING = ("tpe", "nsgaii", "nsgaiii", "cmaes", "gp")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LEARNING if installed(name)])
def test_what_learns_proposes_better_rows_than_random(name: str) -> None:
    """So the history reaches it: generations, sources and constraints are where it looks for them."""
    later = {
        kind: [statistics.mean(map(seconds, search(kind, seed, 50).pool.order[25:])) for seed in range(2)]
        for kind in (name, "random")
    }
    assert statistics.mean(later[name]) < 0.9 * statistics.mean(later["random"])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    missing = "sampler optuna:cmaes: the package cmaes is missing; pip install cmaes"
    with pytest.raises(UsageError, match=missing):
        OptunaRows(task(line(3)), "cmaes")
