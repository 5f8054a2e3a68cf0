import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.gpu import DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG, DeviceError
from tuner.simulator.device import memory
from tuner.simulator.device.happens_before import moment_after
from tuner.simulator.device.memory import (
    LARGEST_BYTES,
    MAP_BYTES,
    RED_ZONE_BYTES,
    EncodedMap,
    MemoryKind,
    SimulatedMemory,
    device_bytes,
    is_map,
)


def test_memory_is_aligned_nan_and_named_in_order() -> None:
    found = SimulatedMemory()
    regions = [found.allocate(12, MemoryKind.DEVICE) for _ in range(3)] + [
        found.allocate(4, MemoryKind.PINNED)
    ]
    assert [region.name for region in regions] == ["d0", "d1", "d2", "p0"]
    assert all(region.address % 256 == 0 for region in regions)
    assert all(np.isnan(region.bytes.view(np.float32)).all() for region in regions)
    assert found.live() == tuple(regions)
    found.register(np.zeros(4, np.uint8).ctypes.data, 4)
    assert found.live() == tuple(regions)


def test_addresses_are_found_by_their_region_red_zones_included() -> None:
    found = SimulatedMemory()
    regions = [found.allocate(100, MemoryKind.DEVICE) for _ in range(20)]
    for region in regions:
        near = (region.address - RED_ZONE_BYTES, region.address, region.end, region.end + RED_ZONE_BYTES - 1)
        assert all(found.near(address) is region for address in near)
        assert found.at(region.address) is region
        assert found.at(region.address + 1) is None
    assert found.near(7) is None
    assert found.describe(regions[3].address + 5) == "byte 5 of d3 (100 bytes)"
    assert found.describe(7) == "host memory"


def test_overlaps_are_seen_from_both_sides() -> None:
    found = SimulatedMemory()
    region = found.allocate(100, MemoryKind.DEVICE)
    assert found.overlapping(region.address + 50, 10) is region
    assert found.overlapping(region.address - RED_ZONE_BYTES - 8, 9) is region
    assert found.overlapping(region.address - RED_ZONE_BYTES - 8, 8) is None
    assert found.overlapping(region.address - 10**6, 10**7) is region


def test_registered_memory_is_the_callers_and_has_no_red_zones() -> None:
    found, array = SimulatedMemory(), np.zeros(4, np.float32)
    region = found.register(array.ctypes.data, array.nbytes)
    region.bytes[:] = 0xFF
    assert np.isnan(array).all()
    assert found.near(array.ctypes.data + 15) is region
    assert found.near(array.ctypes.data + 16) is None
    assert region.stray_bytes() == 0
    assert found.unregister(array.ctypes.data) is region
    assert found.unregister(array.ctypes.data) is None


def test_a_write_next_to_a_region_is_counted() -> None:
    region = SimulatedMemory().allocate(100, MemoryKind.DEVICE)
    region._slab[region.end - int(region._slab.ctypes.data)] = 0  # noqa: SLF001 - what a stray write does
    assert region.stray_bytes() == 1


def test_freed_memory_is_kept_up_to_a_limit_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "QUARANTINE_BYTES", 250)
    found = SimulatedMemory()
    regions = [found.allocate(100, MemoryKind.DEVICE) for _ in range(4)]
    regions[0].is_kept = True
    for region in (*regions, regions[1]):
        region.freed = moment_after(0, ())
        found.retire(region)
    addresses = [region.address for region in regions]
    found.release()
    assert [found.at(address) is not None for address in addresses] == [True, False, True, True]


@pytest.mark.parametrize("size_bytes", [2**60, 2**64 - 20])
def test_memory_that_is_not_there_is_refused_as_by_a_driver(size_bytes: int) -> None:
    message = f"CUDA_ERROR_OUT_OF_MEMORY: found {size_bytes} bytes, allowed what is free here"
    with pytest.raises(DeviceError, match=message):
        SimulatedMemory().allocate(size_bytes, MemoryKind.DEVICE)


def test_device_memory_has_addresses_that_no_other_has_until_its_last_view_is_gone() -> None:
    sizes = (1, 4097, 1 << 20)
    arrays = [device_bytes(size) for size in sizes]
    assert {int(each.ctypes.data) >> DEVICE_ADDRESS_BITS for each in arrays} == {DEVICE_ADDRESS_TAG}
    assert [array.size for array in arrays] == [*sizes]
    for array in arrays:
        array[:] = 7
    assert ctypes.addressof(ctypes.create_string_buffer(1 << 20)) >> DEVICE_ADDRESS_BITS != DEVICE_ADDRESS_TAG
    address = int(device_bytes(1 << 20)[5:].ctypes.data) - 5
    assert f"{address:x}-" not in Path("/proc/self/maps").read_text()
    with pytest.raises(MemoryError, match="bytes"):
        device_bytes(LARGEST_BYTES + 1)


def test_a_process_may_end_with_device_memory() -> None:
    code = f"from {device_bytes.__module__} import device_bytes; kept = device_bytes(9); kept[:] = 1"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0


MEMORY = SimulatedMemory()
REGION = MEMORY.allocate(4096, MemoryKind.DEVICE)


def test_a_map_says_in_128_bytes_what_it_was_made_of_and_views_its_tensor_outermost_first() -> None:
    found = EncodedMap(REGION.address + 256, (64, 8), (128,), (32, 4), 6, 2)
    content = found.encode()
    assert (len(content), is_map(content), is_map(bytes(128))) == (MAP_BYTES, True, False)
    assert EncodedMap.decode(content) == found
    tensor = found.tensor(MEMORY.near)
    tensor.array[1, 3] = 7
    assert REGION.bytes[256 + 128 + 6 : 256 + 128 + 8].view(np.float16)[0] == 7
    assert (tensor.array.shape, tensor.box, tensor.swizzle_bytes) == ((8, 64), (4, 32), 64)
    tensor = EncodedMap(REGION.address, (64, 8), (256,), (32, 4), 11, 3).tensor(MEMORY.near)
    assert (tensor.is_tf32, tensor.array.dtype) == (True, np.dtype(np.float32))  # copies round


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ((0, (), (), (), 7, 0), "tensor map: found 0 sizes, allowed 1 to 5"),
        ((0, (8, 8), (), (8, 8), 7, 0), "tensor map: found 2 sizes, allowed 1 to 5 with strides"),
        ((0, (8,), (), (8,), 12, 0), "found type 12 and swizzle 0, which are not simulated"),
        ((0, (8,), (), (8,), 7, 4), "found type 7 and swizzle 4, which are not simulated"),
        ((16, (8,), (), (8,), 7, 0), "found 32 bytes at 0x10, which are in no buffer"),
        ((REGION.address + 4080, (8,), (), (8,), 7, 0), "which are in no buffer"),
        ((REGION.address, (8, 8), (64,), (8, 8), 7, 0), r"found strides \(64, 4\), allowed a contig"),
    ],
)
def test_a_map_not_simulated_or_in_no_buffer_is_refused(broken: tuple[Any, ...], message: str) -> None:
    found = EncodedMap(*broken)
    with pytest.raises(DeviceError, match=message):
        found.tensor(MEMORY.near) if found.address else found.encode()
