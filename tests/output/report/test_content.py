import pytest

from tests.output.report.values import reported
from tests.trials import measurement, trial
from tuner.core.errors import Failure, Stage
from tuner.output.report import content
from tuner.output.report.content import shown_trials, varying_knobs

WRONG = Failure(Stage.VERIFY, "wrong")


def test_trials_are_listed_fastest_first_and_failed_last() -> None:
    trials = (trial(0, WRONG), trial(1, measurement(2.0)), trial(3, measurement(1.0)))
    assert [each.number for each in shown_trials(reported(trials), 1)] == [3, 1, 0]


def test_of_too_many_trials_the_fastest_and_a_sample_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "TRIALS_SHOWN", 40)
    monkeypatch.setattr(content, "TRIALS_SHOWN_OF_RUN", 10)
    many = reported(tuple(trial(n, measurement(1.0 + n)) for n in range(100)))
    numbers = [each.number for each in shown_trials(many, 2)]
    assert len(numbers) == len(set(numbers)) == 20
    assert numbers[:10] == list(range(10))
    assert numbers[-1] > 90
    assert len(shown_trials(many, 20)) == 10
    assert len(shown_trials(reported(many.trials[:20]), 2)) == 20


def test_knobs_of_one_value_do_not_vary() -> None:
    trials = (trial(1, WRONG, knobs=2), trial(10, WRONG, knobs=1), trial(2, WRONG, knobs=1))
    assert varying_knobs(trials) == {"knob_0": (1, 2, 10)}
