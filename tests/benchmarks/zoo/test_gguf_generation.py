"""Seconds of prompts and tokens are those between the times of a call's tokens."""

import pytest

from benchmarks.zoo.gguf_generation import EAGER, SLOW_ROUNDS, TUNER, GgufGeneration, _seconds


def test_the_prompt_is_the_first_difference_and_a_token_the_median_of_the_others() -> None:
    ours = iter([(None, [0.0, 3.0, 4.0, 6.0, 7.0]), (None, [10.0, 12.0, 12.5, 13.0, 20.0])])
    seconds = _seconds({TUNER: lambda: next(ours)}, 2)
    assert seconds == {TUNER: [(3.0, 1.0), (2.0, 0.5)]}


def test_slow_ways_are_timed_in_the_first_rounds() -> None:
    seconds = _seconds({EAGER: lambda: (None, [0.0, 1.0, 2.0]), TUNER: lambda: (None, [0.0, 1.0, 2.0])}, 5)
    assert [len(seconds[EAGER]), len(seconds[TUNER])] == [SLOW_ROUNDS, 5]


@pytest.mark.parametrize("is_equal", [True, False])
def test_a_row_says_whether_tokens_are_equal(is_equal: bool) -> None:
    row = GgufGeneration("Q4_0", is_equal, prompt_per_s={TUNER: 484.04}, decode_per_s={TUNER: 248.567})
    expected = {True: "equal", False: "OTHER TOKENS"}[is_equal]
    assert row.text == f"Q4_0: {expected}; prompt and decode tokens/s: tuner 484.0 and 248.57"
