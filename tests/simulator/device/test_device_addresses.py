import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.core.gpu import DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG
from tuner.simulator.device.memory import LARGEST_BYTES, device_bytes


def test_device_memory_has_addresses_that_no_other_has() -> None:
    arrays = [device_bytes(size) for size in (1, 4097, 1 << 20)]
    addresses = [int(each.ctypes.data) for each in arrays]
    assert {address >> DEVICE_ADDRESS_BITS for address in addresses} == {DEVICE_ADDRESS_TAG}
    for array, size in zip(arrays, (1, 4097, 1 << 20), strict=True):
        assert array.size == size
        array[:] = 7
    other = ctypes.create_string_buffer(1 << 20)
    assert ctypes.addressof(other) >> DEVICE_ADDRESS_BITS != DEVICE_ADDRESS_TAG


def test_memory_is_given_back_with_its_last_view() -> None:
    address = int(device_bytes(1 << 20)[5:].ctypes.data) - 5
    assert f"{address:x}-" not in Path("/proc/self/maps").read_text()


def test_what_has_no_package_is_an_error() -> None:
    with pytest.raises(MemoryError, match="bytes"):
        device_bytes(LARGEST_BYTES + 1)


def test_a_process_may_end_with_device_memory() -> None:
    code = f"from {device_bytes.__module__} import device_bytes; kept = device_bytes(9); kept[:] = 1"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0
