"""A hash of memory: equal for equal contents, another one after any change of a bit or of an order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.runtime.cpu.content_hash import ContentHash

pytestmark = pytest.mark.mlir


def hash_of(*arrays: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> int:
    return ContentHash([(each.ctypes.data, each.nbytes) for each in arrays]).value()


@given(size=st.integers(0, 1600), offset=st.integers(0, 9), data=st.data())
@settings(max_examples=15)
def test_each_byte_counts_and_none_beside_them(size: int, offset: int, data: st.DataObject) -> None:
    memory = np.random.default_rng(size).integers(0, 256, size + 32, dtype=np.uint8)
    part = memory[offset : offset + size]
    before = hash_of(part)
    assert hash_of(part.copy()) == before
    memory[offset + size] ^= 1
    assert hash_of(part) == before
    if size:
        part[data.draw(st.integers(0, size - 1))] ^= 1 << data.draw(st.integers(0, 7))
        assert hash_of(part) != before


@pytest.mark.parametrize("size", [3, 16, 200, 4096])
def test_signs_and_the_order_of_elements_count(size: int) -> None:
    numbers = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    variants = [numbers, -numbers, numbers[::-1].copy(), np.roll(numbers, size // 2), np.zeros_like(numbers)]
    assert len({hash_of(each.view(np.uint8)) for each in variants}) == len(variants)


def test_ranges_count_in_their_order_and_a_hash_is_of_the_present_contents() -> None:
    a, b = np.arange(700, dtype=np.uint8), np.arange(9, dtype=np.uint8)
    assert len({hash_of(a, b), hash_of(b, a), hash_of(a), hash_of(b), hash_of()}) == 5
    a = np.zeros(1000, np.uint8)
    content = ContentHash([(a.ctypes.data, a.nbytes)])
    before = content.value()
    a[999] = 1
    assert content.value() != before
    a[999] = 0
    assert content.value() == before
