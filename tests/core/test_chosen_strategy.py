from pathlib import Path

import pytest

from tuner.core.chosen_strategy import ChosenStrategy


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (ChosenStrategy("first"), "first"),
        (ChosenStrategy("of=a recording"), "of=a recording"),
        (ChosenStrategy("mine", Path("/a=b/mine.mlir")), "mine=/a=b/mine.mlir"),
    ],
)
def test_what_is_stored_reads_back(chosen: ChosenStrategy, text: str) -> None:
    assert chosen.text == text
    assert ChosenStrategy.parse(text) == chosen
