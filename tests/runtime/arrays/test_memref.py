import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.device import DeviceError
from tuner.runtime.arrays.memref import MemRef, element_bytes_of_tensor_map

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@given(SHAPES)
def test_row_major_memory_has_numpys_strides_and_extent(shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.float32)
    view = MemRef.of(64, shape)
    if array.size:
        assert tuple(stride * 4 for stride in view.strides) == np.zeros(shape, np.float32, "C").strides
    assert view.extent_bytes(4) == array.nbytes


@given(SHAPES, st.integers(0, 2**40), st.integers(0, 100))
def test_a_descriptor_is_read_as_it_was_written(shape: tuple[int, ...], address: int, offset: int) -> None:
    view = MemRef(address, address, offset, shape, MemRef.of(0, shape).strides)
    words = np.array(view.words, np.int64)
    assert MemRef.at(words.ctypes.data, len(shape)) == view
    assert view.address(8) == address + 8 * offset


def test_a_strided_view_ends_behind_its_last_element() -> None:
    assert MemRef(0, 0, 3, (2, 4), (100, 2)).extent_bytes(4) == (100 + 6 + 1) * 4


def test_elements_of_tensor_maps_have_the_sizes_of_their_types() -> None:
    assert [element_bytes_of_tensor_map(number) for number in (0, 6, 7, 8, 9, 11)] == [1, 2, 4, 8, 2, 4]
    with pytest.raises(DeviceError, match="tensor map: found type 13, allowed 0 to 12"):
        element_bytes_of_tensor_map(13)
