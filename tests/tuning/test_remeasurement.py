import pytest

from tests.trials import measurement, trial
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage
from tuner.core.interfaces import FINAL_EFFORT, AbstractRunner, BoundRecord, Effort, FinalTimes
from tuner.core.records import Measurement
from tuner.core.runs import Baseline
from tuner.tuning.run_steps import choose_top_trials, final_effort, noise_of, remeasure_top_trials


class RemeasurementRunner(AbstractRunner):
    """Answers finals with given times."""

    def __init__(self, times: tuple[Measurement | None, ...], baseline: Baseline | None = None) -> None:
        self._times = FinalTimes(times, baseline)
        self.top_trials: tuple[BoundRecord, ...] = ()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        raise NotImplementedError

    def finish(self) -> BoundRecord:
        raise NotImplementedError

    def remeasure(self, top_trials: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        self.top_trials = top_trials
        return self._times

    def close(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("search_s", "budget_s"), [(0.0, 0.03), (1.0, 0.03), (10.0, 0.2), (15.0, 0.3), (600.0, 0.3)]
)
def test_the_effort_follows_the_search_up_to_that_of_a_long_one(search_s: float, budget_s: float) -> None:
    effort = final_effort(search_s)
    assert effort.budget_s == pytest.approx(budget_s)
    assert effort.min_samples == FINAL_EFFORT.min_samples
    assert effort.has_offsets


def test_the_fastest_are_chosen_in_order() -> None:
    trials = tuple(trial(number, measurement(10.0 - number)) for number in range(10))
    assert [each.number for each in choose_top_trials(trials)] == [9, 8, 7, 6, 5, 4, 3, 2]


def test_failures_are_not_chosen() -> None:
    trials = (trial(0, Failure(Stage.RUN, "x")), trial(2, measurement(1.0)))
    assert [each.number for each in choose_top_trials(trials)] == [2]


def test_of_equal_code_only_the_first_is_chosen() -> None:
    trials = (trial(0, measurement(1.0), code="c"), trial(1, measurement(1.0), code="c"))
    assert [each.number for each in choose_top_trials(trials)] == [0]


def test_the_fastest_takes_part_twice() -> None:
    top_trials = (trial(0, measurement(1.0), script="// 0"), trial(1, measurement(1.1), script="// 1"))
    runner = RemeasurementRunner((measurement(1.0), measurement(1.2), measurement(1.03)))
    final_times = remeasure_top_trials(runner, top_trials)
    first, second = (each.record for each in top_trials)
    assert [each.record for each in runner.top_trials] == [first, second, first]
    assert [each.script.text for each in runner.top_trials] == [
        each.script_text for each in (*top_trials, top_trials[0])
    ]
    assert [each.median_s for _, each in final_times.times] == [1.0, 1.2]
    assert final_times.noise == pytest.approx(0.03)


def test_a_top_trial_that_no_longer_works_is_left_out() -> None:
    top_trials = (trial(0, measurement(1.0)), trial(1, measurement(1.1)))
    final_times = remeasure_top_trials(RemeasurementRunner((None, measurement(1.2), None)), top_trials)
    assert [each.number for each, _ in final_times.times] == [1]
    assert final_times.noise is None


def test_the_baseline_library_that_took_turns_is_reported() -> None:
    baseline = Baseline("cuBLAS 13.1.2", 0, measurement(0.9))
    final_times = remeasure_top_trials(
        RemeasurementRunner((measurement(1.0),) * 2, baseline), (trial(0, measurement(1.0)),)
    )
    assert final_times.baseline == baseline
    assert len(final_times.times) == 1


def test_noise_is_never_less_than_half_an_interval() -> None:
    assert noise_of(measurement(1.0, 0.06), measurement(1.0, 0.02)) == pytest.approx(0.03)


def test_noise_is_the_difference_of_equal_code() -> None:
    assert noise_of(measurement(1.1), measurement(1.0)) == pytest.approx(0.1)
