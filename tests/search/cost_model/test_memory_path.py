from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.search.cost_model.gpu import access_cycles, by_kind, passes, stream_cycles

LANES = np.arange(32)


@pytest.mark.parametrize(
    ("words", "width", "expected"),
    [
        (LANES, 1, 1),  # each bank once
        (0 * LANES, 1, 1),  # one word for all lanes
        (2 * LANES, 1, 2),
        (32 * LANES, 1, 32),  # one bank
        (33 * LANES, 1, 1),  # rows of a padded tile
        (2 * LANES, 2, 2),  # 256 bytes in a row
        (4 * LANES, 4, 4),
        (0 * LANES, 4, 1),  # all parts ask for the same four words
        (4 * (LANES // 8), 4, 1),  # sixteen words, of sixteen banks
        (32 * LANES, 4, 32),
    ],
)
def test_passes_are_words_of_one_bank(words: np.ndarray, width: int, expected: int) -> None:
    assert passes(words, width) == expected


@given(st.lists(st.integers(0, 4096), min_size=32, max_size=32))
def test_narrow_accesses_take_as_many_passes_as_the_busiest_bank_has_words(words: list[int]) -> None:
    banks = Counter(word % 32 for word in set(words))
    assert passes(np.array(words), 1) == max(banks.values())


@given(st.lists(st.integers(0, 1024), min_size=32, max_size=32), st.sampled_from([2, 4]))
def test_wide_accesses_take_no_more_passes_than_their_parts_alone(words: list[int], width: int) -> None:
    starts = width * np.array(words)
    parts = [
        Counter(word % 32 for word in set((part[:, None] + np.arange(width)).ravel().tolist()))
        for part in np.split(starts, width)
    ]
    alone = [max(part.values()) for part in parts]
    assert max(alone) <= passes(starts, width) <= sum(alone)


def test_an_access_costs_its_layer_at_least_and_twice_as_much_on_turing() -> None:
    assert access_cycles("load_shared", 0 * LANES, 4, 86) == 2.0
    assert access_cycles("load_shared", 0 * LANES, 4, 75) == 4.0
    assert access_cycles("load_global", LANES, 1, 86) == 1.5
    assert access_cycles("load_shared", 2 * LANES, 1, 86) == 2.0
    assert stream_cycles("store_shared", 4, 90) == 4.0


@pytest.mark.parametrize(("width", "like"), [(0, 1), (3, 2), (8, 4)])
def test_other_widths_count_as_the_next_narrower_one(width: int, like: int) -> None:
    assert access_cycles("load_shared", 0 * LANES, width, 90) == access_cycles(
        "load_shared", 0 * LANES, like, 90
    )


def test_equal_rows_are_looked_at_once() -> None:
    seen: list[tuple[int, int]] = []

    def cycles(one: int, other: int) -> float:
        seen.append((one, other))
        return one + 10.0 * other

    found = by_kind((np.array([1.0, 2.0, 1.0]), np.array([3.0, 3.0, 3.0])), cycles)
    assert found.tolist() == [31.0, 32.0, 31.0]
    assert seen == [(1, 3), (2, 3)]
