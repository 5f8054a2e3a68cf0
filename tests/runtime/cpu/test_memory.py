"""Memory for kernels: aligned, fenced, kept."""

import ctypes
import mmap
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.dtypes import INPUT_DTYPES
from tuner.payload.reference import NUMPY_DTYPES
from tuner.runtime.cpu.faulting_memory import FAULTING_BYTES, FaultingMemory
from tuner.runtime.cpu.memory import (
    ALIGNMENT_BYTES,
    GUARD_BYTES,
    GuardedArray,
    copy_on_small_pages,
    placed_copy,
    placed_empty,
)

SMAPS = Path("/proc/self/smaps")
MAPPINGS = SMAPS.read_text() if SMAPS.exists() else ""
NEEDS_SMAPS = pytest.mark.skipif(not MAPPINGS, reason="needs /proc/self/smaps")
NEEDS_SIZES = pytest.mark.skipif(
    re.search("(?m)^Rss: +[1-9]", MAPPINGS) is None,
    reason="needs sizes in /proc/self/smaps: in an emulator all are 0",
)
SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40))
DTYPES = st.sampled_from([np.dtype(np.float32), np.dtype(np.float64)])


@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@given(SHAPES, st.sampled_from([0, 8, 16, 32, 48]))
def test_arrays_lie_where_they_are_asked_to(dtype: str, shape: tuple[int, int], offset: int) -> None:
    array = placed_empty(shape, NUMPY_DTYPES[dtype], offset)
    assert array.ctypes.data % ALIGNMENT_BYTES == offset
    assert (array.shape, array.dtype) == (shape, NUMPY_DTYPES[dtype])
    assert (array.flags.c_contiguous, array.flags.writeable) == (True, True)


def test_a_copy_holds_what_was_copied_whatever_its_strides() -> None:
    source = np.arange(60.0).reshape(6, 10)[::2, ::-3]
    copy = placed_copy(source)
    assert np.array_equal(copy, source)
    assert copy.flags.c_contiguous
    copy[...] = 0
    assert source.any()  # memory of its own


@given(SHAPES, DTYPES, st.sampled_from([0, 16]), st.integers(1, GUARD_BYTES), st.booleans())
def test_a_fresh_guarded_array_is_nan_and_every_byte_written_next_to_it_is_counted(
    shape: tuple[int, int], dtype: np.dtype[np.float64], offset: int, distance: int, is_after: bool
) -> None:
    guarded = GuardedArray.placed(shape, dtype, offset)
    array = guarded.array
    assert np.isnan(array).all()
    assert array.ctypes.data % ALIGNMENT_BYTES == offset
    array[...] = 1.0
    assert guarded.stray_bytes() == 0
    stray_at = array.ctypes.data + (array.nbytes + distance - 1 if is_after else -distance)
    stray = ctypes.c_uint8.from_address(stray_at)  # as a kernel would
    stray.value ^= 0xFF
    assert guarded.stray_bytes() == 1
    guarded.poison()
    assert guarded.stray_bytes() == 0


FAULTS = """
import ctypes, resource, sys
from tuner.runtime.cpu.memory import keep_freed_memory
SIZE = 12 << 20
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "kept":
    keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [libc.malloc(ctypes.c_size_t(SIZE)) for _ in range(3)]
    for block in blocks:
        ctypes.memset(block, 1, SIZE)
    for block in blocks:
        libc.free(ctypes.c_void_p(block))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(min(faults() for _ in range(3)))
"""


@pytest.mark.slow
def test_a_packing_buffer_is_faulted_in_once_not_on_every_call() -> None:
    command = [sys.executable, "-c", FAULTS]
    kept, given_back = (int(subprocess.check_output([*command, how])) for how in ("kept", "given back"))
    assert kept == 0
    assert given_back > 0  # else the test would show nothing


@given(st.integers(1, 9000), st.sampled_from([1, 4, 16, 64]), st.booleans())
def test_faulting_memory_holds_an_array_at_either_end(size: int, alignment: int, at_end: bool) -> None:
    memory = FaultingMemory(size, is_read_only=True)
    start = memory.start(size, alignment, at_end=at_end)
    assert start % alignment == 0
    assert memory.seen.ctypes.data % mmap.PAGESIZE == 0
    assert 0 <= memory.seen.size - start - size < (alignment if at_end else mmap.PAGESIZE)
    assert start == 0 or at_end
    memory.written[start : start + size] = 7
    assert np.all(memory.seen[start : start + size] == 7)
    assert not memory.seen.flags.writeable


def mapping_of(address: int) -> tuple[str, str]:
    """Returns the protection of the mapping that has an address, and its fields; "" without one."""
    mappings = r"(?m)^([0-9a-f]+)-([0-9a-f]+) (\S+).*\n((?:\w+: .*\n)+)"
    for begin, end, mode, fields in re.findall(mappings, SMAPS.read_text()):
        if int(begin, 16) <= address < int(end, 16):
            return mode, fields
    return "", ""


def protection(address: int) -> str:
    return mapping_of(address)[0]


@NEEDS_SMAPS
def test_memory_is_mapped_read_only_between_pages_that_fault_and_unmapped_with_the_last_array() -> None:
    memory = FaultingMemory(5000, is_read_only=True)
    address, view = memory.seen.ctypes.data, memory.seen[:10]
    del memory
    size = 2 * mmap.PAGESIZE
    around = [protection(at) for at in (address - FAULTING_BYTES, address - 1, address, address + size - 1)]
    assert around == ["---p", "---p", "r--s", "r--s"]
    assert protection(address + size) == protection(address + size + FAULTING_BYTES - 1) == "---p"
    assert view[0] == 0xFF
    del view
    assert protection(address) != "r--s"


# Copies of arrays on small pages: their numbers, their place, and the pages that they have.

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


@NEEDS_SIZES
def test_no_page_is_a_large_one() -> None:
    copy = copy_on_small_pages(np.ones(2**21, np.float64))
    _, fields = mapping_of(copy.ctypes.data)
    sizes_kib = dict(re.findall(r"(?m)^(\w+): +(\d+) kB$", fields))
    assert int(sizes_kib["Rss"]) >= 2**14
    assert sizes_kib["AnonHugePages"] == "0"
