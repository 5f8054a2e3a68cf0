"""Sizes at which code of static shapes is compiled for a dimension that changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.dynamic_sizes import ladder_size, size_ladder
from tuner.core.errors import UsageError


def test_sizes_of_a_range() -> None:
    assert size_ladder(1, 100) == (1, 2, 4, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 100)
    assert size_ladder(300, 4096)[:3] == (300, 320, 384)
    assert len(size_ladder(1, 4096)) == 40


@given(st.integers(1, 5000), st.integers(0, 5000), st.data())
def test_every_size_of_the_range_has_code_that_is_less_than_a_quarter_greater(
    least: int, more: int, data: st.DataObject
) -> None:
    ladder = size_ladder(least, least + more)
    size = data.draw(st.integers(least, least + more))
    compiled = ladder_size(ladder, size)
    assert size <= compiled <= least + more
    assert compiled * 4 < size * 5 or compiled <= 8
    assert list(ladder) == sorted(set(ladder))


@pytest.mark.parametrize("ends", [(0, 4), (5, 4), (-1, -1)])
def test_an_empty_range_is_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="range begins at 1"):
        size_ladder(*ends)


@pytest.mark.parametrize("size", [0, 101])
def test_a_size_out_of_the_range_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="ends at 100"):
        ladder_size(size_ladder(1, 100), size)
