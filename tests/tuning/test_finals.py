import pytest

from tests.trials import measurement, trial
from tuner.core.bench import AbstractBench, BoundRecord, FinalTimes
from tuner.core.candidate import Candidate
from tuner.core.errors import Failure, Stage
from tuner.core.record import Measurement
from tuner.core.runs import Baseline
from tuner.core.target import Effort
from tuner.tuning.finals import choose_finalists, noise_of, time_finalists


class FinalsBench(AbstractBench):
    """Answers finals with given times."""

    def __init__(self, times: tuple[Measurement | None, ...], baseline: Baseline | None = None) -> None:
        self._times = FinalTimes(times, baseline)
        self.finalists: tuple[BoundRecord, ...] = ()

    def start(self, number: int, candidate: Candidate, effort: Effort) -> None:
        raise NotImplementedError

    def finish(self) -> BoundRecord:
        raise NotImplementedError

    def finals(self, finalists: tuple[BoundRecord, ...], effort: Effort) -> FinalTimes:
        self.finalists = finalists
        return self._times

    def close(self) -> None:
        raise NotImplementedError


def test_the_fastest_are_chosen_in_order() -> None:
    trials = tuple(trial(number, measurement(10.0 - number)) for number in range(10))
    assert [each.number for each in choose_finalists(trials)] == [9, 8, 7, 6, 5, 4, 3, 2]


def test_failures_are_not_chosen() -> None:
    trials = (trial(0, Failure(Stage.RUN, "x")), trial(2, measurement(1.0)))
    assert [each.number for each in choose_finalists(trials)] == [2]


def test_of_equal_code_only_the_first_is_chosen() -> None:
    trials = (trial(0, measurement(1.0), code="c"), trial(1, measurement(1.0), code="c"))
    assert [each.number for each in choose_finalists(trials)] == [0]


def test_the_fastest_takes_part_twice() -> None:
    finalists = (trial(0, measurement(1.0), script="// 0"), trial(1, measurement(1.1), script="// 1"))
    bench = FinalsBench((measurement(1.0), measurement(1.2), measurement(1.03)))
    finals = time_finalists(bench, finalists)
    first, second = (each.record for each in finalists)
    assert [each.record for each in bench.finalists] == [first, second, first]
    assert [each.script.text for each in bench.finalists] == [
        each.script_text for each in (*finalists, finalists[0])
    ]
    assert [each.median_s for _, each in finals.times] == [1.0, 1.2]
    assert finals.noise == pytest.approx(0.03)


def test_a_finalist_that_no_longer_works_is_left_out() -> None:
    finalists = (trial(0, measurement(1.0)), trial(1, measurement(1.1)))
    finals = time_finalists(FinalsBench((None, measurement(1.2), None)), finalists)
    assert [each.number for each, _ in finals.times] == [1]
    assert finals.noise is None


def test_the_baseline_library_that_took_turns_is_told() -> None:
    baseline = Baseline("cuBLAS 13.1.2", 0, measurement(0.9))
    finals = time_finalists(FinalsBench((measurement(1.0),) * 2, baseline), (trial(0, measurement(1.0)),))
    assert finals.baseline == baseline
    assert len(finals.times) == 1


def test_noise_is_never_less_than_half_an_interval() -> None:
    assert noise_of(measurement(1.0, 0.06), measurement(1.0, 0.02)) == pytest.approx(0.03)


def test_noise_is_the_difference_of_equal_code() -> None:
    assert noise_of(measurement(1.1), measurement(1.0)) == pytest.approx(0.1)
