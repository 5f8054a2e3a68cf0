import pytest

from tests.trials import measurement, trial
from tuner.answer import answer_of, script_lines, timed
from tuner.errors import Failure, Stage

FAILED = Failure(Stage.COMPILE, "no")
FAST, SLOWER = measurement(1.0, 0.02), measurement(1.005, 0.02)


def test_no_measured_trial_gives_no_answer() -> None:
    assert answer_of((trial(0, FAILED), trial(1, None)), 0.01) is None


def test_the_fastest_is_the_best_when_nothing_is_tied() -> None:
    answer = answer_of((trial(0, measurement(2.0)), trial(1, measurement(1.0)), trial(2, FAILED)), 0.01)
    assert answer is not None
    assert answer.best.number == 1
    assert answer.tied == (answer.best,)


def test_only_finalists_count_where_there_are_any() -> None:
    lucky = trial(0, measurement(0.5))
    final = trial(1, measurement(0.9), final=measurement(1.0))
    answer = answer_of((lucky, final), None)
    assert answer is not None
    assert answer.best.number == 1
    assert answer.measurement.median_s == 1.0


def test_overlapping_intervals_within_the_noise_are_tied() -> None:
    trials = (trial(0, measurement(1.0, 0.02)), trial(1, measurement(1.005, 0.02)))
    answer = answer_of(trials, 0.01)
    assert answer is not None
    assert [each.number for each in answer.tied] == [0, 1]


def test_a_median_beyond_the_noise_floor_is_not_tied_though_intervals_overlap() -> None:
    trials = (trial(0, measurement(1.0, 0.2)), trial(1, measurement(1.05, 0.2)))
    answer = answer_of(trials, 0.01)
    assert answer is not None
    assert [each.number for each in answer.tied] == [0]


def test_separate_intervals_are_not_tied_though_the_noise_floor_is_high() -> None:
    trials = (trial(0, measurement(1.0, 0.001)), trial(1, measurement(1.02, 0.001)))
    answer = answer_of(trials, 0.05)
    assert answer is not None
    assert [each.number for each in answer.tied] == [0]


def test_without_a_noise_floor_the_intervals_decide() -> None:
    trials = (trial(0, measurement(1.0, 0.2)), trial(1, measurement(1.05, 0.2)))
    answer = answer_of(trials, None)
    assert answer is not None
    assert len(answer.tied) == 2


@pytest.mark.parametrize(
    ("fast", "simple"),
    [
        (
            trial(0, measurement(1.0, 0.02), script="a\nb\nc\n"),
            trial(1, measurement(1.005, 0.02), script="a\n"),
        ),
        (trial(0, measurement(1.0, 0.02), knobs=3), trial(1, measurement(1.005, 0.02), knobs=2)),
    ],
    ids=["fewer lines", "fewer knobs"],
)
def test_among_the_tied_the_simplest_wins(fast: object, simple: object) -> None:
    answer = answer_of((fast, simple), 0.01)  # type: ignore[arg-type]
    assert answer is not None
    assert answer.best is simple
    assert answer.tied == (fast, simple)


def test_equally_simple_ones_are_decided_by_time() -> None:
    answer = answer_of((trial(0, measurement(1.005, 0.02)), trial(1, measurement(1.0, 0.02))), 0.01)
    assert answer is not None
    assert answer.best.number == 1


def test_comments_and_blank_lines_do_not_make_a_script_longer() -> None:
    assert script_lines("// why\n\nmodule {\n  // what\n}\n") == 2


def test_a_failed_trial_has_no_time() -> None:
    with pytest.raises(ValueError, match="trial 100 was not timed"):
        timed(trial(0, FAILED))
