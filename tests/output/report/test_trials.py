from tests.output.report.parsed import parsed
from tests.trials import measurement, trial
from tuner.core.errors import Failure, Stage
from tuner.core.record import Verdict
from tuner.output.report.trials import trial_list

FAILED = trial(1, Failure(Stage.VERIFY, "wrong"))


def test_a_row_tells_speed_time_and_the_knobs_that_differ() -> None:
    drawn = parsed(trial_list((trial(0, measurement(1e-3)), FAILED), 2, {101: "failure-3-0"}))
    assert [each.get("id") for each in drawn.of("tr")] == [None, "t100", "t101"]
    assert "1000.001024 GFLOP/s1 msknob_0=0" in drawn.text
    assert "101failed: verifyknob_0=1" in drawn.text
    assert [each["href"] for each in drawn.of("a")] == ["#failure-3-0"]
    assert "All 2 trials" in drawn.text


def test_a_failure_of_a_kind_that_is_not_shown_is_no_link() -> None:
    assert parsed(trial_list((FAILED,), 1, {})).of("a") == []


def test_what_was_only_verified_has_no_time() -> None:
    assert "100verified" in parsed(trial_list((trial(0, Verdict(0.0, 64)),), 1, {})).text


def test_a_part_of_the_trials_is_told_as_such() -> None:
    assert "1 of 7 trials, the fastest and a sample" in parsed(trial_list((FAILED,), 7, {})).text
