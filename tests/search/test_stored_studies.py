from dataclasses import replace

import optuna
import pytest

from tests.trials import measurement, run, trial
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial
from tuner.search.method import stored_studies


def point(number: int, median_s: float | None, strategy: str = "fake", **knobs: Value) -> StoredTrial:
    outcome = Failure(Stage.RUN, "crash") if median_s is None else measurement(median_s)
    made = trial(number, outcome)
    return replace(made, record=replace(made.record, candidate=Candidate.of(strategy, knobs)))


def study(*trials: StoredTrial) -> optuna.Study:
    storage = stored_studies([(run(), trials)])
    return optuna.load_study(study_name="run 3: matmul 8x8x8 f32 nn none on fake", storage=storage)


def test_a_timed_trial_is_complete_and_a_failed_one_failed() -> None:
    found = study(point(0, 2.0, x=1), point(1, None, x=4), point(2, 1.0, x=8))
    assert found.best_value == 1.0
    assert found.best_params == {"strategy": "fake", "x": 8}
    assert [each.state.name for each in found.trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert found.trials[1].user_attrs == {"trial": 101, "status": "failed", "stage": "run", "reason": "crash"}
    assert found.trials[0].user_attrs["reliability"] == point(0, 2.0).reliability.text
    assert found.user_attrs["value"] == "seconds per call, the median"


def test_knobs_of_several_strategies_are_in_one_study() -> None:
    found = study(point(0, 2.0, "a", x=1, order="ij"), point(1, 1.0, "b", y="-"), point(2, 1.0, "a", x=9))
    assert [set(each.params) for each in found.trials] == [
        {"strategy", "x", "order"},
        {"strategy", "y"},
        {"strategy", "x"},
    ]
    assert found.trials[0].distributions["x"] == optuna.distributions.IntDistribution(1, 9)


def test_numbers_and_texts_of_one_knob_are_categories() -> None:
    assert [each.params["x"] for each in study(point(0, 1.0, x=1), point(1, 1.0, x="auto")).trials] == [
        1,
        "auto",
    ]


def test_optuna_reports_no_line_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    study(point(0, 1.0, x=1))
    assert capsys.readouterr() == ("", "")
