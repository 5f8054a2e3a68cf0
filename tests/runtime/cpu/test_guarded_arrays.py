"""Memory for kernels: aligned, fenced, kept."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.problem import INPUT_DTYPES
from tuner.payload.reference import NUMPY_DTYPES
from tuner.runtime.cpu.guarded_arrays import (
    ALIGNMENT_BYTES,
    GUARD_BYTES,
    GuardedArray,
    placed_copy,
    placed_empty,
)

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40))
DTYPES = st.sampled_from([np.dtype(np.float32), np.dtype(np.float64)])


@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@given(SHAPES, st.sampled_from([0, 8, 16, 32, 48]))
def test_arrays_lie_where_they_are_asked_to_and_are_contiguous(
    dtype: str, shape: tuple[int, int], offset: int
) -> None:
    array = placed_empty(shape, NUMPY_DTYPES[dtype], offset)
    assert array.ctypes.data % ALIGNMENT_BYTES == offset
    assert (array.shape, array.dtype) == (shape, NUMPY_DTYPES[dtype])
    assert array.flags.c_contiguous
    assert array.flags.writeable


def test_a_copy_holds_what_was_copied_whatever_its_strides() -> None:
    source = np.arange(60.0).reshape(6, 10)[::2, ::-3]
    copy = placed_copy(source)
    assert np.array_equal(copy, source)
    assert copy.flags.c_contiguous
    copy[...] = 0
    assert source.any()  # memory of its own


@given(SHAPES, DTYPES, st.sampled_from([0, 16]))
def test_a_fresh_guarded_array_is_nan_and_its_guards_are_whole(
    shape: tuple[int, int], dtype: np.dtype[np.float64], offset: int
) -> None:
    guarded = GuardedArray(shape, dtype, offset)
    assert np.isnan(guarded.array).all()
    assert guarded.array.ctypes.data % ALIGNMENT_BYTES == offset
    assert guarded.stray_bytes() == 0
    guarded.array[...] = 1.0
    assert guarded.stray_bytes() == 0


@given(SHAPES, DTYPES, st.integers(1, GUARD_BYTES), st.booleans())
def test_every_byte_written_next_to_the_array_is_counted(
    shape: tuple[int, int], dtype: np.dtype[np.float64], distance: int, is_after: bool
) -> None:
    guarded = GuardedArray(shape, dtype)
    array = guarded.array
    offset = array.nbytes + distance - 1 if is_after else -distance
    stray = ctypes.c_uint8.from_address(array.ctypes.data + offset)  # as a kernel would
    stray.value ^= 0xFF
    assert guarded.stray_bytes() == 1
    guarded.poison()
    assert guarded.stray_bytes() == 0


FAULTS = """
import ctypes, resource, sys
from tuner.runtime.cpu.guarded_arrays import keep_freed_memory
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


def test_a_packing_buffer_is_faulted_in_once_not_on_every_call() -> None:
    command = [sys.executable, "-c", FAULTS]
    kept, given_back = (
        int(subprocess.run([*command, how], capture_output=True, text=True, check=True).stdout)
        for how in ("kept", "given back")
    )
    assert kept == 0
    assert given_back > 0  # else the test would show nothing
