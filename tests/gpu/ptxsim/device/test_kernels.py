"""Memory and modules of the simulated GPU: addresses, maps; parsed once, loaded once, launched."""

import ctypes
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.device import DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG, Extent, KernelLaunch
from tuner.core.errors import DeviceError
from tuner.core.gpu import chip_of
from tuner.gpu.ptxsim.device import kernels, memory
from tuner.gpu.ptxsim.device.happens_before import moment_after
from tuner.gpu.ptxsim.device.kernels import SimulatedKernels
from tuner.gpu.ptxsim.device.memory import EncodedMap, MemoryKind, SimulatedMemory, device_bytes
from tuner.gpu.ptxsim.launch import prepare
from tuner.gpu.ptxsim.ptx.parser import parse

# y[t] = n x[t]
SCALE = text_beside(__file__, "SCALE").encode()
OTHER = SCALE.replace(b"entry scale", b"entry other")
COUNT = text_beside(__file__, "COUNT").encode()
RED_ZONE = memory.RED_ZONE_BYTES
MEMORY = SimulatedMemory()
REGION = MEMORY.allocate(4096, MemoryKind.DEVICE)


class Parameters:
    def __init__(self, *values: Any) -> None:
        self.values = values
        self.pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self.address = ctypes.addressof(self.pointers)
        self.count = len(values)

    def launch(self, function: int, threads: int = 64) -> KernelLaunch:
        return KernelLaunch(function, Extent(1), Extent(threads), 0, self.address, self.count)


def unseen(text: str) -> bytes:
    """Returns the module with a comment of its own: no test before has had it parsed."""
    return SCALE + f"// {text}".encode()


def with_numbers() -> tuple[SimulatedMemory, Any]:
    memory = SimulatedMemory()
    region = memory.allocate(512, MemoryKind.DEVICE)
    region.bytes[:256].view(np.float32)[:] = np.arange(64)
    return memory, region


def scaling(region: Any, factor: float) -> Parameters:
    x, y = ctypes.c_uint64(region.address), ctypes.c_uint64(region.address + 256)
    return Parameters(x, ctypes.c_float(factor), y)


def loaded(image: bytes = SCALE) -> tuple[SimulatedKernels, int]:
    found, handle = SimulatedKernels(chip_of("sm_90")), itertools.count(1).__next__
    module, _ = found.load(image, handle)
    return found, found.function(module, "scale", handle)


def counted(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]) -> list[object]:
    """Returns the calls of a function of ``kernels`` from now on."""
    calls: list[object] = []

    def noted(*given: Any) -> Any:
        calls.append(given)
        return function(*given)

    monkeypatch.setattr(kernels, function.__name__, noted)
    return calls


def test_a_launch_runs_on_the_memory_it_points_into_with_the_values_of_the_call() -> None:
    memory, region = with_numbers()
    found, function = loaded()
    given = scaling(region, 3)
    launch = found.prepare(given.launch(function))
    given.values[1].value = 5  # too late
    simulation = launch.run(memory.near, None)
    assert region.bytes[256:].view(np.float32).tolist() == [3 * number for number in range(64)]
    assert simulation.races == ()
    (touched,) = simulation.touched
    address, reads, writes = touched.address, touched.reads.tolist(), touched.writes.tolist()
    assert (address, reads, writes) == (region.address, [[0, 256]], [[256, 512]])


def test_an_image_is_parsed_once_and_unloaded_by_its_last_user(monkeypatch: pytest.MonkeyPatch) -> None:
    image, parsed = unseen("parsed once"), counted(monkeypatch, parse)
    found, handle = SimulatedKernels(chip_of("sm_90")), itertools.count(1).__next__
    first, is_new = found.load(image, handle)
    assert (is_new, found.load(image + b"\0", handle)) == (True, (first, False))
    function = found.function(first, "scale", handle)
    assert found.function(first, "scale", handle) == function
    assert (found.unload(first), found.unload(first)) == (False, True)
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_INVALID_HANDLE: found function 0x2, allowed one of a"):
        found.kernel(function)
    third, is_new = found.load(image, handle)
    assert (third != first, is_new, len(parsed)) == (True, True, 1)


def test_a_kernel_is_decoded_once_for_all_launches_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    image, decoded = unseen("decoded once"), counted(monkeypatch, prepare)
    memory, region = with_numbers()
    for factor, (found, function) in ((2, loaded(image)), (5, loaded(image))):
        given = scaling(region, factor)
        found.prepare(given.launch(function)).run(memory.near, None)
        assert region.bytes[256:].view(np.float32).tolist() == [factor * number for number in range(64)]
    assert len(decoded) == 1


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (b"\x7fELF....", "CUDA_ERROR_NO_BINARY_FOR_GPU: machine code cannot be simulated"),
        (b"\x50\xed\x55\xba....", r"code cannot be simulated: the simulator reads PTX \(format=isa\)"),
        (b"nonsense", "CUDA_ERROR_INVALID_PTX"),
        (b"\xff\xfe", "CUDA_ERROR_INVALID_PTX"),
        (OTHER, "CUDA_ERROR_NOT_FOUND: .*no kernel 'scale', allowed oth"),
    ],
)
def test_an_image_that_cannot_be_read_is_refused(image: bytes, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        loaded(image)


@pytest.mark.parametrize(
    ("block", "shared", "count", "message"),
    [
        (Extent(64), 0, 2, "kernel scale: found 2 parameters, allowed 3"),
        (Extent(65), 0, 3, "kernel scale: found a block of 65 threads, allowed up to 64"),
        (Extent(64, 0), 0, 3, "allowed sizes from 1"),
        (Extent(64), 233472, 3, "found 233472 bytes of dynamic shared memory, allowed 232448 on sm_90"),
    ],
)
def test_a_launch_that_chip_or_kernel_refuses(block: Extent, shared: int, count: int, message: str) -> None:
    found, function = loaded()
    given = Parameters(*(ctypes.c_uint64(0) for _ in range(count)))
    with pytest.raises(DeviceError, match=f"CUDA_ERROR_INVALID_VALUE: .*{message}"):
        found.prepare(KernelLaunch(function, Extent(1), block, shared, given.address, count))


def test_a_fault_of_a_kernel_is_an_error_with_its_name() -> None:
    for code, name, is_sticky, message in (
        (SCALE, "CUDA_ERROR_LAUNCH_FAILED", True, "out of bounds"),
        (SCALE.replace(b"mul.f32", b"nonsense.f32"), "", False, "the simulator does not know"),
    ):
        found, function = loaded(code)
        given = Parameters(ctypes.c_uint64(64), ctypes.c_float(1), ctypes.c_uint64(64))
        with pytest.raises(DeviceError, match=f"^kernel scale: .*{message}") as caught:
            found.prepare(given.launch(function)).run(SimulatedMemory().near, None)
        assert (caught.value.error_name, caught.value.is_sticky) == (name, is_sticky)


def test_a_modules_variables_keep_their_content_until_it_is_unloaded() -> None:
    memory = SimulatedMemory()
    region = memory.allocate(4, MemoryKind.DEVICE)
    found, handle = SimulatedKernels(chip_of("sm_90")), itertools.count(1).__next__
    given = Parameters(ctypes.c_uint64(region.address))
    seen = []
    for launches in (2, 1):
        module, _ = found.load(COUNT, handle)
        function = found.function(module, "scale", handle)
        for _ in range(launches):
            found.prepare(given.launch(function, threads=1)).run(memory.near, None)
            seen.append(int(region.bytes.view(np.uint32)[0]))
        assert found.unload(module)
    assert seen == [8, 9, 8]


def test_memory_is_aligned_nan_and_named_in_order() -> None:
    found = SimulatedMemory()
    kinds = (MemoryKind.DEVICE,) * 3 + (MemoryKind.PINNED,)
    regions = [found.allocate(12, kind) for kind in kinds]
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
        near = (region.address - RED_ZONE, region.address, region.end, region.end + RED_ZONE - 1)
        assert all(found.near(address) is region for address in near)
        assert found.at(region.address) is region
        assert found.at(region.address + 1) is None
    assert found.near(7) is None
    assert found.describe(regions[3].address + 5) == "byte 5 of d3 (100 bytes)"
    assert found.describe(7) == "host memory"


def test_overlaps_are_seen_from_both_sides() -> None:
    found = SimulatedMemory()
    region = found.allocate(100, MemoryKind.DEVICE)
    for offset, size in ((50, 10), (-RED_ZONE - 8, 9), (-(10**6), 10**7)):
        assert found.overlapping(region.address + offset, size) is region
    assert found.overlapping(region.address - RED_ZONE - 8, 8) is None


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
        device_bytes(memory.LARGEST_BYTES + 1)


def test_a_process_may_end_with_device_memory() -> None:
    code = f"from {device_bytes.__module__} import device_bytes; kept = device_bytes(9); kept[:] = 1"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0


def test_a_map_says_in_128_bytes_what_it_was_made_of_and_views_its_tensor_outermost_first() -> None:
    found = EncodedMap(REGION.address + 256, (64, 8), (128,), (32, 4), 6, 2)
    content = found.encode()
    assert (memory.is_map(content), memory.is_map(bytes(128))) == (True, False)
    assert (len(content), EncodedMap.decode(content)) == (memory.MAP_BYTES, found)
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
