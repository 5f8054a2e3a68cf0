"""Parameters as a driver gets them: addresses, or descriptors word by word."""

import struct
from typing import Any

import numpy as np
import pytest

from tests.programs.interpreter.lane_kernels import kernel_of, module_text

pytestmark = pytest.mark.mlir


SCALE = """%t = gpu.thread_id x %x = memref.load %0[%t] : memref<{}xf32{}>
  %y = arith.mulf %x, %1 : f32 memref.store %y, %0[%t] : memref<{}xf32{}>"""


def kernel(size: str = "4", layout: str = "") -> Any:
    kind = f"memref<{size}xf32{layout}>"
    return kernel_of(module_text(SCALE.format(size, layout, size, layout), (kind, "f32")))


def options(*numbers: int) -> list[bytes]:
    return [struct.pack("<q", number) for number in numbers]


def launched(one: Any, contents: list[bytes]) -> None:
    from tuner.programs.interpreter.kernels import LaneLaunch

    one.launch_bytes(LaneLaunch((1, 1, 1), (4, 1, 1)), contents)


@pytest.mark.parametrize("is_bare", [True, False])
def test_a_memref_is_an_address_or_a_descriptor(is_bare: bool) -> None:
    a = np.arange(4, dtype=np.float32)
    address = a.ctypes.data
    memref = options(address) if is_bare else options(address, address, 0, 4, 1)
    launched(kernel(), [*memref, struct.pack("<f", 3.0)])
    assert a.tolist() == [0, 3, 6, 9]


def test_a_descriptor_reports_offset_and_strides() -> None:
    a = np.arange(9, dtype=np.float32)
    address = a.ctypes.data
    dynamic = kernel("?", ", strided<[?], offset: ?>")
    launched(dynamic, [*options(address, address, 1, 4, 2), struct.pack("<f", 10.0)])
    assert a.tolist() == [0, 10, 2, 30, 4, 50, 6, 70, 8]
    assert dynamic.pointers([*options(address, address, 1, 4, 2), bytes(4)]) == [(address + 4, "f32")]


@pytest.mark.parametrize(
    ("size", "contents", "message"),
    [
        ("4", options(0, 0, 0), "found 3 parameters, allowed 6"),
        ("?", [*options(16), bytes(4)], "found an address alone, allowed a descriptor"),
        ("4", [*options(16), bytes(2)], "found 2 bytes, allowed 4"),
    ],
)
def test_what_does_not_fit_is_refused(size: str, contents: list[bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        launched(kernel(size), contents)


def test_terms_of_a_sum_are_the_longest_dimension_that_is_known() -> None:
    assert (kernel("40").terms, kernel("?").terms) == (40, 1)
