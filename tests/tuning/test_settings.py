"""Settings of a run: defaults, targets, what is refused."""

from pathlib import Path

import pytest

import tuner
from tests.tuning import fakes
from tuner.core.candidate import ChosenStrategy, TargetName
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.requests import RunRequest
from tuner.core.runs import RunSettings
from tuner.space.file.yaml import default_space_file
from tuner.targets.interface import TargetStatus
from tuner.tuning.request import run_settings

PROBLEM = Matmul(8, 8, 8)


def settings(**options: object) -> RunSettings:
    return run_settings(RunRequest(PROBLEM, **options), fakes.backends())  # type: ignore[arg-type]


def test_defaults_are_filled_in() -> None:
    made = settings()
    assert (made.trials, made.budget_s, made.threads, made.workers) == (100, None, 1, 1)
    assert made.target == TargetName("fake")
    assert made.space_yaml == default_space_file().read_text()
    assert ChosenStrategy("matmul_cpu_packed") in made.strategies


def test_a_budget_in_seconds_alone_limits_no_trials() -> None:
    assert settings(budget_s=5.0).trials is None


def test_files_may_be_named_by_texts() -> None:
    named = settings(warm_files=("a.t4.json",), space=str(default_space_file()))
    assert named.warm_files == (str(Path("a.t4.json").absolute()),)


def test_without_times_the_sampler_is_one_that_needs_none() -> None:
    untimed = TargetStatus("simulator", True, "no clock", is_timed=False)
    backends = fakes.backends((untimed, TargetStatus("fake", True, "for tests")))
    problem = tuner.Matmul(8, 8, 8, "f16")
    assert run_settings(RunRequest(problem, "simulator"), backends).sampler == "random"
    assert run_settings(RunRequest(problem, "simulator"), backends).target == TargetName("simulator", "sm_90")
    assert (
        run_settings(RunRequest(problem, "simulator", sampler="exhaustive"), backends).sampler == "exhaustive"
    )
    assert run_settings(RunRequest(problem, "fake"), backends).sampler == "tpe"
    with pytest.raises(
        UsageError, match="sampler: found 'tpe', allowed random, exhaustive: target simulator"
    ):
        run_settings(RunRequest(problem, "simulator", sampler="tpe"), backends)


def test_what_processors_do_not_take_is_refused_before_anything_is_tried() -> None:
    backends = fakes.backends((TargetStatus("cpu", True, "here"),))
    with pytest.raises(UsageError, match="dtype: found 'f16', allowed f32, f64, bf16, i8 on target cpu"):
        run_settings(RunRequest(tuner.Matmul(8, 8, 8, "f16")), backends)
