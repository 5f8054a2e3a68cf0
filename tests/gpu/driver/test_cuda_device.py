"""The device on a stand-in for the driver: calls arrive, are cached where they may be, and report errors."""

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.calling_every import KERNEL, call_everything
from tests.support.stub_driver import StubDriver, stub_library
from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import Extent, KernelLaunch
from tuner.core.errors import DeviceError
from tuner.gpu.driver.device import CudaDevice

OUT_OF_MEMORY, ILLEGAL_ADDRESS = 2, 700
KIB = 1024


@pytest.fixture
def stub() -> StubDriver:
    return StubDriver()


@pytest.fixture
def device(stub: StubDriver) -> CudaDevice:
    return stub.open()


def test_every_method_reaches_the_driver(stub: StubDriver, device: CudaDevice) -> None:
    for _, call in call_everything(device):
        call()
    assert (stub.errors, stub.live_blocks) == ([], 0)
    assert (device.name, device.chip) == ("stub GPU 0", "sm_90")
    assert (stub.calls("cuMemcpyAsync"), stub.calls("cuLaunchKernelEx")) == (3, 1)
    assert stub.variable("stub_pool_threshold", ctypes.c_uint64).value == 2**64 - 1


def test_memory_of_an_earlier_stand_in_is_not_that_of_this_one() -> None:
    """Devices of earlier tests are garbage-collected at any time, and free what they had allocated."""
    earlier = StubDriver().open()
    addresses = [earlier.allocate(4096, 0) for _ in range(8)]
    stub = StubDriver()
    device = stub.open()
    for _ in addresses:
        device.allocate(4096, 0)  # the C library hands out the same ones again
    for address in addresses:
        with pytest.raises(DeviceError, match="NOT_INITIALIZED"):
            earlier.free(address, 0)
    assert stub.live_blocks == 8


def test_an_image_is_loaded_once_and_a_kernel_looked_up_once(stub: StubDriver, device: CudaDevice) -> None:
    module = device.load_module(KERNEL)
    assert device.load_module(KERNEL) == module
    assert device.function(module, "k") == device.function(module, "k")
    assert (stub.calls("cuModuleLoadData"), stub.calls("cuModuleGetFunction")) == (1, 1)
    device.unload_module(module)
    assert stub.calls("cuModuleUnload") == 0
    device.unload_module(module)
    assert stub.calls("cuModuleUnload") == 1
    with pytest.raises(DeviceError, match=r"module 0x[0-9a-f]+: the module is not loaded"):
        device.function(module, "k")
    device.load_module(KERNEL)
    assert stub.calls("cuModuleLoadData") == 2


def test_shared_memory_above_48_kib_is_asked_for_once_per_size(stub: StubDriver, device: CudaDevice) -> None:
    function = device.function(device.load_module(b"cubin"), "k")
    for shared_bytes in (48 * KIB, 100 * KIB, 64 * KIB, 100 * KIB, 227 * KIB):
        device.launch(KernelLaunch(function, Extent(1), Extent(1), shared_bytes), 0)
    assert stub.calls("cuFuncSetAttribute") == 2
    assert [sizes[6] // KIB for _, sizes in stub.launches] == [48, 100, 64, 100, 227]
    with pytest.raises(DeviceError, match="k: found 233472 bytes of dynamic shared memory, allowed 232448"):
        device.launch(KernelLaunch(function, Extent(1), Extent(1), 228 * KIB), 0)


def test_clusters_are_passed_and_large_ones_asked_for_once(stub: StubDriver, device: CudaDevice) -> None:
    function = device.function(device.load_module(b"cubin"), "k")
    for cluster, asked in ((Extent(4, 2), 0), (Extent(8, 2), 1), (Extent(16), 1)):
        device.launch(KernelLaunch(function, Extent(16, 2), Extent(32), cluster=cluster), 0)
        assert tuple(stub.variable("stub_cluster", ctypes.c_uint * 3)) == cluster
        assert stub.calls("cuFuncSetAttribute") == asked
    assert stub.launches[0] == ("k", (16, 2, 1, 32, 1, 1, 0))


def test_timed_events_measure_seconds(stub: StubDriver, device: CudaDevice) -> None:
    start, stop = device.create_event(is_timed=True), device.create_event(is_timed=True)
    device.record_event(start, 0)
    device.record_event(stop, 0)
    assert 0 <= device.elapsed_s(start, stop) < 1
    with pytest.raises(DeviceError, match="cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE"):
        device.elapsed_s(start, device.create_event())


def test_without_pools_memory_is_allocated_and_freed_at_once(stub: StubDriver) -> None:
    stub.machine(has_pools=False)
    device = stub.open()
    device.free(device.allocate(0, 0), 0)
    assert (stub.calls("cuMemAlloc"), stub.calls("cuMemFree"), stub.calls("cuMemAllocAsync")) == (1, 1, 0)
    assert stub.calls("cuMemPoolSetAttribute") == 0


def test_tensor_maps_carry_every_field(stub: StubDriver, device: CudaDevice) -> None:
    address = device.allocate(4096, 0)
    found = device.tensor_map(address, TensorMapLayout((64, 8, 2), (128, 1024), (32, 4, 1), 6, 1, 3, 2, 1))
    options = np.frombuffer(found, np.uint32)
    assert options[:7].tolist() == [6, 3, address & 0xFFFF_FFFF, 1, 3, 2, 1]
    assert options[7:27].reshape(4, 5)[:, :3].tolist() == [[64, 8, 2], [128, 1024, 0], [32, 4, 1], [1, 1, 1]]


def test_an_error_reports_call_purpose_words_and_is_sticky(stub: StubDriver, device: CudaDevice) -> None:
    stub.fail("cuMemAllocAsync", OUT_OF_MEMORY)
    message = r"^cuMemAllocAsync: 99 bytes: CUDA_ERROR_OUT_OF_MEMORY: out of memory$"
    with pytest.raises(DeviceError, match=message) as caught:
        device.allocate(99, 0)
    assert (caught.value.error_name, caught.value.is_sticky) == ("CUDA_ERROR_OUT_OF_MEMORY", False)
    device.free(device.allocate(99, 0), 0)
    stub.fail("cuStreamSynchronize", ILLEGAL_ADDRESS, after=1)
    device.synchronize_stream(0)
    message = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"
    for _ in range(2):
        with pytest.raises(DeviceError, match=message) as caught:
            device.synchronize_stream(0)
        assert caught.value.is_sticky


def test_an_error_without_words_is_reported_by_its_number(stub: StubDriver, device: CudaDevice) -> None:
    stub.fail("cuStreamSynchronize", 4242)
    with pytest.raises(DeviceError, match=r"^cuStreamSynchronize: CUDA error 4242$"):
        device.synchronize_stream(0)


def test_each_thread_gets_the_context_and_closing_gives_it_back(stub: StubDriver, device: CudaDevice) -> None:
    with ThreadPoolExecutor(1) as thread:
        device.destroy_stream(thread.submit(device.create_stream).result())
    assert stub.calls("cuCtxSetCurrent") == 2
    device = stub.open()
    device.free(0, 0)
    assert stub.calls("cuMemFreeAsync") == 0
    device.close()
    assert stub.calls("cuDevicePrimaryCtxRelease") == 1


BINDINGS = """
from tests.support.stub_driver import StubDriver
from tests.gpu.driver import test_cuda_device as tests
from tuner.gpu.driver.probe import open_device

def check(test):
    stub, device = StubDriver(), open_device()
    assert device._driver.origin.startswith("cuda-bindings"), device._driver.origin
    assert device.facts.driver_version == "13.0"
    test(stub, device)

check(tests.test_every_method_reaches_the_driver)
check(tests.test_timed_events_measure_seconds)
check(tests.test_tensor_maps_carry_every_field)
check(tests.test_shared_memory_above_48_kib_is_asked_for_once_per_size)
check(tests.test_clusters_are_passed_and_large_ones_asked_for_once)
check(tests.test_an_error_reports_call_purpose_words_and_is_sticky)
check(tests.test_an_error_without_words_is_reported_by_its_number)
print("ok")
"""


def test_the_bindings_make_the_same_calls(tmp_path: Path) -> None:
    """In a process of its own, where the loader finds the stand-in under the driver's name."""
    pytest.importorskip("cuda.bindings")
    folder = stub_library().parent
    environment = os.environ | {"LD_LIBRARY_PATH": str(folder), "STUB_DRIVER": str(stub_library())}
    command = [sys.executable, "-c", BINDINGS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout.strip(), done.stderr) == ("ok", "")
