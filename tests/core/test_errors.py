"""Errors of the user, and of a candidate."""

import pickle

import numpy as np
import pytest

from tuner.core.errors import CandidateError, Failure, Stage, TunerError, UsageError, defect_line, failing_at


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
    error = UsageError("best: nothing measured", "tuner tune matmul 8x8x8")
    error.hint += " --db x.db"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error) == "best: nothing measured; tuner tune matmul 8x8x8 --db x.db"
    assert str(UsageError("shape: found 8")) == "shape: found 8"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "not enough memory"),
        (MemoryError("8 bytes"), "not enough memory: 8 bytes"),
        (
            KeyError("attempt to access a non-existent attribute"),
            "an operation lacks an attribute that its kind needs here: is the transform meant for it?",
        ),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError("two\nlines"), "ValueError: two lines"),
    ],
)
def test_an_error_that_nobody_raised_on_purpose_is_one_line(error: Exception, line: str) -> None:
    assert defect_line(error) == line


@pytest.mark.mlir
def test_the_bindings_say_a_missing_attribute_as_it_is_known_here() -> None:
    from tuner.mlir.bindings import ir

    with ir.Context(), pytest.raises(KeyError) as raised:
        ir.Module.parse("module {}").operation.attributes["none"]
    assert defect_line(raised.value).startswith("an operation lacks an attribute")


def test_memory_that_numpy_lacks_is_said_in_words() -> None:
    with pytest.raises(MemoryError) as raised:
        np.empty(2**59, np.float64)
    assert defect_line(raised.value).startswith("not enough memory: Unable to allocate 4.00 EiB")
