"""The words of the format for failures."""

import pytest

from tuner.core.errors import Failure, Stage
from tuner.space.recorded.t4 import invalidity_of


@pytest.mark.parametrize("stage", list(Stage))
def test_every_stage_has_a_word(stage: Stage) -> None:
    assert invalidity_of(Failure(stage, "no")) in ("compile", "runtime", "correctness")
    assert invalidity_of(Failure(stage, "timed out after 3 s")) == "timeout"
