"""Errors of the user, and of a candidate."""

import pickle

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


def test_what_to_type_ends_the_line_in_another_process_too() -> None:
    error = UsageError("best: nothing measured; begin with: ", "tuner tune matmul 8x8x8")
    error.command += " --db x.db"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error) == "best: nothing measured; begin with: tuner tune matmul 8x8x8 --db x.db"
    assert str(UsageError("shape: found 8")) == "shape: found 8"
