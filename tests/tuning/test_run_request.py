"""What may be asked of a run."""

import re
from pathlib import Path

import pytest

from tests.tuning.fakes import MACHINE
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.requests import RunRequest

PROBLEM = Matmul(8, 8, 8)


def test_without_a_budget_it_is_100_trials() -> None:
    assert RunRequest(PROBLEM).trials_limit == 100
    assert RunRequest(PROBLEM, budget_s=5.0).trials_limit is None
    assert RunRequest(PROBLEM, trials=3, budget_s=5.0).trials_limit == 3


def test_without_a_number_the_cores_compile() -> None:
    assert RunRequest(PROBLEM).workers_on(MACHINE) == MACHINE.physical_cores
    assert RunRequest(PROBLEM, workers=3).workers_on(MACHINE) == 3


def test_files_are_stored_with_their_whole_path() -> None:
    request = RunRequest(PROBLEM, warm_files=("a.t4.json", Path("b.t4.json")))
    assert request.warm_paths == (str(Path("a.t4.json").absolute()), str(Path("b.t4.json").absolute()))


def test_a_strategy_may_be_a_path() -> None:
    request = RunRequest(PROBLEM, strategies=(Path("mine.mlir"), "matmul_cpu_packed"))
    assert request.strategy_text == ("mine.mlir", "matmul_cpu_packed")


@pytest.mark.parametrize("name", ["threads", "trials", "workers"])
def test_counts_begin_at_1(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}: found 0, allowed 1 or more"):
        RunRequest(PROBLEM, **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["trials", "workers", "threads", "seed"])
@pytest.mark.parametrize("found", [2.5, "5", True])
def test_counts_are_integers(name: str, found: object) -> None:
    with pytest.raises(UsageError, match=rf"{name}: found {re.escape(repr(found))}, allowed an integer"):
        RunRequest(PROBLEM, **{name: found})  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [0, -1.0, float("nan"), float("inf"), "5s"])
def test_a_budget_is_a_time_that_ends(found: object) -> None:
    with pytest.raises(UsageError, match=r"budget: found .*, allowed seconds, more than 0"):
        RunRequest(PROBLEM, budget_s=found)  # type: ignore[arg-type]


def test_a_seed_is_not_negative() -> None:
    with pytest.raises(UsageError, match="seed: found -1, allowed 0 or more"):
        RunRequest(PROBLEM, seed=-1)


def test_a_seed_fits_a_database() -> None:
    with pytest.raises(UsageError, match="seed: found 9223372036854775808, allowed 0 to 9223372036854775807"):
        RunRequest(PROBLEM, seed=2**63)
