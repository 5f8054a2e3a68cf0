"""Errors of the user, and of a candidate."""

import pytest

from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError, failing_at


def test_a_usage_error_within_is_the_candidates_failure_at_the_stage() -> None:
    with pytest.raises(CandidateError) as caught, failing_at(Stage.RUN):
        raise UsageError("tile: found 7, allowed 8")
    assert caught.value.failure == Failure(Stage.RUN, "tile: found 7, allowed 8")
    assert isinstance(caught.value.__cause__, UsageError)


@pytest.mark.parametrize("error", [CandidateError(Stage.VERIFY, "wrong"), TunerError("broken")])
def test_any_other_error_is_left_as_it_is(error: TunerError) -> None:
    with pytest.raises(TunerError) as caught, failing_at(Stage.RUN):
        raise error
    assert caught.value is error
