import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.space import enumeration
from tuner.space.enumeration import RowKeys, sort_keys
from tuner.space.search_space import Knob, SearchSpace


def keys_of(*sizes: int) -> RowKeys:
    return RowKeys(SearchSpace("s", tuple(Knob(f"k{n}", tuple(range(size))) for n, size in enumerate(sizes))))


@given(st.lists(st.integers(1, 4), max_size=5), st.integers(1, 300))
def test_keys_count_the_product_with_the_last_knob_fastest(sizes: list[int], word_limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "WORD_LIMIT", word_limit)  # more than one word
        patch.setattr(enumeration, "DECODED_ROWS", 5)
        keys = keys_of(*sizes)
        every = np.array(list(itertools.product(*map(range, sizes)))).reshape(math.prod(sizes), len(sizes))
        shuffled = np.random.default_rng(0).permutation(len(every))
        encoded = keys.encode(every[shuffled].astype(np.uint8))
        assert np.array_equal(keys.decode(encoded), every[shuffled])
        assert np.array_equal(keys.decode(sort_keys(encoded)), every)


def test_a_space_that_no_word_numbers_takes_more_words() -> None:
    keys = keys_of(*(10,) * 50)
    row = np.arange(50, dtype=np.uint8)[np.newaxis] % 10
    assert len(keys.encode(row)) == 3
    assert np.array_equal(keys.decode(keys.encode(row)), row)


@pytest.mark.parametrize(("choices", "wanted"), [(256, np.uint8), (257, np.uint16), (65537, np.uint32)])
def test_rows_are_as_narrow_as_their_choices_allow(choices: int, wanted: type) -> None:
    rows = keys_of(choices, 2).decode(np.array([[2 * choices - 1]], np.uint64))
    assert rows.dtype == wanted
    assert rows.tolist() == [[choices - 1, 1]]
