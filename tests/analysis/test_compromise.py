from dataclasses import replace

import pytest

from tests.trials import measurement, trial
from tuner.analysis.ratios import best_compromise
from tuner.core.errors import Failure, Stage
from tuner.core.runs import StoredTrial

FAILED = Failure(Stage.COMPILE, "no")


def times(*medians_s: float | None) -> tuple[StoredTrial, ...]:
    """Returns the trials of one machine, one per candidate; None: it failed there."""
    outcomes = (FAILED if median_s is None else measurement(median_s) for median_s in medians_s)
    return tuple(trial(number, outcome) for number, outcome in enumerate(outcomes))


def test_the_candidate_that_is_nowhere_much_slower_than_the_best_is_chosen() -> None:
    found = best_compromise((times(1.0, 2.0, 1.2), times(9.0, 3.0, 3.3)))
    assert found is not None
    assert [each.number for each in found.trials] == [2, 2]
    assert found.slowdowns == pytest.approx((0.2, 0.1))
    assert found.worst == pytest.approx(0.2)


def test_a_candidate_without_time_on_one_machine_is_none_for_all() -> None:
    found = best_compromise((times(1.0, 2.0), times(None, 3.0)))
    assert found is not None
    assert found.slowdowns == pytest.approx((1.0, 0.0))
    assert best_compromise((times(1.0, None), times(None, 3.0))) is None


def test_early_stopped_trials_do_not_count() -> None:
    """Were they candidates, a machine with nothing else would have no fastest trial to compare with."""
    stopped = trial(0, replace(measurement(5.0), is_complete=False))
    assert best_compromise(((stopped,), times(1.0))) is None


def test_a_lucky_first_time_is_no_bar_where_top_trials_were_timed_again() -> None:
    final = replace(trial(0, measurement(0.9)), final=measurement(1.0))
    lucky = trial(1, measurement(0.5))
    found = best_compromise(((final, lucky), times(1.0, 9.0)))
    assert found is not None
    assert found.trials[0] == final
    assert found.slowdowns == (0.0, 0.0)
