import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.inflate import inflate

MIB = 1 << 20


@given(st.binary(max_size=200), st.integers(0, 200))
def test_what_fits_comes_back_and_what_does_not_is_refused(content: bytes, limit: int) -> None:
    packed = zlib.compress(content)
    if len(content) <= limit:
        assert inflate(packed, limit) == content
    else:
        with pytest.raises(ValueError, match=f"found more than {limit} bytes once unpacked"):
            inflate(packed, limit)


@pytest.mark.parametrize(
    "packed", [b"", b"no zlib", zlib.compress(b"whole")[:-1], zlib.compress(b"") + b"more"]
)
def test_what_is_not_whole_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="allowed zlib's format"):
        inflate(packed, 100)


def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = zlib.compress(bytes(64 * MIB))
    tracemalloc.start()
    with pytest.raises(ValueError, match="found more than"):
        inflate(bomb, MIB)
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()
