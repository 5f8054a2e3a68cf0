import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.simulator.device.happens_before import NO_BYTES, ByteRanges

FLAGS = st.lists(st.booleans(), max_size=30)


def ranges(flags: list[bool], start: int = 100) -> ByteRanges:
    """Returns the ranges of the flags that are set; neighbours may be ranges of their own."""
    pairs = [[start + index, start + index + 1] for index, is_set in enumerate(flags) if is_set]
    return ByteRanges.of([np.array(pairs[half::2], np.int64).reshape(-1, 2) for half in (0, 1)])


@given(FLAGS, FLAGS)
def test_the_first_common_byte_is_that_of_the_sets(mine: list[bool], theirs: list[bool]) -> None:
    common = [100 + index for index, both in enumerate(zip(mine, theirs, strict=False)) if all(both)]
    expected = common[0] if common else None
    assert ranges(mine).first_common(ranges(theirs)) == expected
    assert ranges(theirs).first_common(ranges(mine)) == expected


def test_ranges_that_only_meet_have_nothing_in_common() -> None:
    assert ByteRanges.one(0, 8).first_common(ByteRanges.one(8, 8)) is None
    assert ByteRanges.one(0, 9).first_common(ByteRanges.one(8, 8)) == 8
    assert ByteRanges.one(4, 100).first_common(ByteRanges.one(8, 8)) == 8


def test_no_bytes_have_nothing_in_common() -> None:
    assert ByteRanges.one(8, 0) is NO_BYTES
    assert NO_BYTES.first_common(ByteRanges.one(0, 8)) is None
