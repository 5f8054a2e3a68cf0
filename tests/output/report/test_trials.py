from tests.trials import measurement, trial
from tuner.core.errors import Failure, Stage
from tuner.core.record import Verdict
from tuner.output.report.trials import ListedTrial, trial_rows

FAILED = trial(1, Failure(Stage.VERIFY, "wrong"))


def test_a_row_tells_speed_time_and_the_knobs_that_differ() -> None:
    assert trial_rows((trial(0, measurement(1e-3)), FAILED), {101: "failure-3-0"}) == (
        ListedTrial(100, ("0.001024 GFLOP/s", "1 ms"), "knob_0=0"),
        ListedTrial(101, ("failed: verify",), "knob_0=1", "failure-3-0"),
    )


def test_a_failure_of_a_kind_that_is_not_shown_is_no_link() -> None:
    assert trial_rows((FAILED,), {})[0].link == ""


def test_what_was_only_verified_has_no_time() -> None:
    assert trial_rows((trial(0, Verdict(0.0, 64)),), {})[0].outcome == ("verified",)
