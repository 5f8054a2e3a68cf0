from dataclasses import replace

import numpy as np
import pytest

from tests.trials import measurement, trial
from tuner.analysis.selected_result import (
    complexity,
    half_width,
    knobs_on,
    script_lines,
    select_result,
    timed,
)
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import Failure, Stage
from tuner.core.records import Measurement
from tuner.runtime.timing import summarize

FAILED = Failure(Stage.COMPILE, "no")


def noisy(median_s: float, spread: float, seed: int = 0) -> Measurement:
    """Returns a timing of 40 samples; its interval is about a third of the spread to each side."""
    rng = np.random.default_rng(seed)
    samples = median_s * (1 + spread * rng.standard_normal(40))
    return summarize(list(samples / np.median(samples) * median_s), 1, rng)


def test_no_measured_trial_gives_no_answer() -> None:
    assert select_result((trial(0, FAILED),), 0.01) is None


def test_the_fastest_is_the_best_when_nothing_is_tied() -> None:
    selected = select_result((trial(0, measurement(2.0)), trial(1, measurement(1.0)), trial(2, FAILED)), 0.01)
    assert selected is not None
    assert selected.best.number == 1
    assert selected.tied == (selected.best,)


def test_only_top_trials_count_where_there_are_any() -> None:
    lucky = trial(0, measurement(0.5))
    final = trial(1, measurement(0.9), final=measurement(1.0))
    selected = select_result((lucky, final), None)
    assert selected is not None
    assert selected.best.number == 1
    assert selected.measurement.median_s == 1.0


@pytest.mark.parametrize(
    ("slower_s", "spread", "noise", "is_tied"),
    [
        (1.005, 0.001, 0.01, True),  # certainly slower, by less than two timings of the same code differ
        (1.02, 0.001, 0.01, False),  # certainly slower by more than that
        (1.02, 0.2, 0.01, True),  # slower by more than that, and not certainly so
        (1.5, 0.2, 0.01, False),
        (1.02, 0.001, 0.05, True),  # the noise floor decides, however small the intervals
    ],
)
def test_tied_is_what_is_not_shown_to_be_slower_by_more_than_noise(
    slower_s: float, spread: float, noise: float, is_tied: bool
) -> None:
    selected = select_result((trial(0, noisy(1.0, spread)), trial(1, noisy(slower_s, spread, seed=1))), noise)
    assert selected is not None
    assert len(selected.tied) == 1 + is_tied


def test_without_a_noise_layer_half_the_interval_of_the_fastest_is_taken() -> None:
    fastest = noisy(1.0, 0.1)
    within = measurement(1 + 0.9 * half_width(fastest))
    selected = select_result((trial(0, fastest), trial(1, within), trial(2, measurement(1.5))), None)
    assert selected is not None
    assert [each.number for each in selected.tied] == [0, 1]


def test_a_round_that_was_slow_for_all_separates_nobody_and_hides_nothing() -> None:
    """Both were slowed down by up to a half; one is 3 % behind in every round."""
    rounds = 1 + np.random.default_rng(0).random(40) / 2
    fast, slow = (summarize(list(rounds * scale), 1, np.random.default_rng(0)) for scale in (1.0, 1.03))
    assert slow.interval_s[0] < fast.interval_s[1]
    selected = select_result((trial(0, fast), trial(1, slow)), 0.01)
    assert selected is not None
    assert [each.number for each in selected.tied] == [0]


def test_what_is_tied_only_for_being_uncertain_is_not_the_best_though_simpler() -> None:
    fast = trial(0, noisy(1.0, 0.2), script="a\nb\n")
    uncertain = trial(1, noisy(1.03, 0.2, seed=1), script="a\n")
    selected = select_result((fast, uncertain), 0.01)
    assert selected is not None
    assert selected.tied == (fast, uncertain)
    assert selected.best is fast


def test_among_the_tied_the_simplest_wins() -> None:
    fast = trial(0, measurement(1.0, 0.02), script="a\nb\nc\n")
    simple = trial(1, measurement(1.005, 0.02), script="a\n")
    selected = select_result((fast, simple), 0.01)
    assert selected is not None
    assert selected.best is simple
    assert selected.tied == (fast, simple)


def test_a_noisy_session_does_not_make_a_simple_script_out_of_a_slow_one() -> None:
    """Two timings of the same code differed by 103 %: everything is tied, and the fastest is taken."""
    fast, slow = trial(0, noisy(1.0, 0.3), script="a\nb\n"), trial(1, noisy(1.5, 0.3, seed=1), script="a\n")
    selected = select_result((fast, slow), 1.03)
    assert selected is not None
    assert selected.tied == (fast, slow)
    assert selected.best is fast


def test_equally_simple_ones_are_decided_by_time() -> None:
    selected = select_result((trial(3, measurement(1.005, 0.02)), trial(2, measurement(1.0, 0.02))), 0.01)
    assert selected is not None
    assert selected.best.number == 2


def test_an_answer_is_the_same_whenever_it_is_asked_for() -> None:
    trials = (trial(0, noisy(1.0, 0.1)), trial(1, noisy(1.01, 0.1, seed=1)))
    assert select_result(trials, 0.01) == select_result(trials, 0.01)


def test_a_failed_trial_has_no_time() -> None:
    with pytest.raises(ValueError, match="trial 100 was not timed"):
        timed(trial(0, FAILED))


def test_comments_and_blank_lines_do_not_make_a_script_longer() -> None:
    assert script_lines("// why\n\nmodule {\n  // what\n}\n") == 2


def test_knobs_that_leave_something_out_do_not_count() -> None:
    values: dict[str, Value] = {"block": 0, "unroll": 1, "split": "none", "tile": 8, "order": "ji"}
    assert knobs_on(Candidate.of("s", values)) == 2


def test_a_shorter_script_is_simpler_whatever_its_knobs() -> None:
    short = trial(4, measurement(1.0), script="a\n", knobs=9)
    assert complexity(short) < complexity(trial(4, measurement(1.0), script="a\nb\n", knobs=1))


def test_of_equal_scripts_the_one_that_does_less_is_simpler() -> None:
    busy = trial(4, measurement(1.0))
    idle = replace(busy, record=replace(busy.record, candidate=Candidate.of("fake", {"knob_0": 0})))
    assert complexity(idle) < complexity(busy)
