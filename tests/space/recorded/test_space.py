import math
from pathlib import Path

from tests.space.recorded import values
from tuner.core.errors import Failure
from tuner.space.recorded.reading import read_recorded


def test_times_are_by_row_and_failures_have_none(tmp_path: Path) -> None:
    space = read_recorded(values.write_recording(tmp_path))
    assert len(space.times_s) == space.rows == space.feasible.rows
    for outcome, time_s in zip(space.outcomes, space.times_s, strict=True):
        assert math.isnan(time_s) == isinstance(outcome, Failure)
        assert isinstance(outcome, Failure) or outcome.time_s == time_s


def test_knobs_are_those_of_every_strategy(tmp_path: Path) -> None:
    assert read_recorded(values.write_recording(tmp_path)).knobs == values.KNOBS
