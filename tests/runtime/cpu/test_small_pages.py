"""Copies of arrays on small pages: their numbers, their place, and the pages that they have."""

from pathlib import Path

import numpy as np
import pytest

from tuner.runtime.cpu.memory import copy_on_small_pages

PAGE_BYTES = 4096


@pytest.mark.parametrize("offset", [0, 16, 48])
def test_a_copy_has_the_numbers_and_the_offset(offset: int) -> None:
    array = np.arange(1200, dtype=np.float64).reshape(40, 30)
    copy = copy_on_small_pages(array, offset)
    assert np.array_equal(copy, array)
    assert copy.dtype == array.dtype
    assert copy.ctypes.data % PAGE_BYTES == offset
    copy[0, 0] = 7
    assert array[0, 0] == 0


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system has no /proc/self/smaps")
def test_no_page_is_a_large_one() -> None:
    copy = copy_on_small_pages(np.ones(2**21, np.float64))
    mapping = mapping_of(copy.ctypes.data)
    assert int(mapping["Rss:"]) >= 2**14
    assert mapping["AnonHugePages:"] == "0"


def mapping_of(address: int) -> dict[str, str]:
    """The fields of /proc/self/smaps of the mapping that has an address: name -> number of KiB."""
    fields: dict[str, str] = {}
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if "-" in first and not first.endswith(":"):
            begin, end = (int(each, 16) for each in first.split("-"))
            inside = begin <= address < end
        elif inside and rest:
            fields[first] = rest[0]
    return fields
