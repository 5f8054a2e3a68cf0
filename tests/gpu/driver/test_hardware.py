"""The device and host programs on a real GPU, by each way to call the driver."""

import ctypes

import numpy as np
import pytest

from tests.gpu.ptxsim.device.test_kernels import SCALE, Parameters
from tests.models.run.host_modules import BUFFER, IN_PLACE, TOKENS, N, compiled, two_chains
from tests.runtime.calling_every import call_everything
from tuner.core.errors import DeviceError
from tuner.gpu.driver.device import CudaDevice
from tuner.gpu.driver.driver import AbstractDriver, BindingsDriver, CheckedDriver, CtypesDriver
from tuner.gpu.driver.probe import open_device
from tuner.gpu.run.device_function import DeviceFunction
from tuner.runtime.arrays import ArrayView

pytestmark = [pytest.mark.mlir, pytest.mark.cuda]
A, B = np.arange(N, dtype=np.float32), np.full(N, 0.25, np.float32)


@pytest.fixture(scope="module", params=[CtypesDriver, BindingsDriver])
def device(request: pytest.FixtureRequest) -> CudaDevice:
    try:
        open_device()
    except DeviceError as error:
        pytest.skip(str(error))
    try:
        driver: AbstractDriver = request.param()
    except ImportError:
        pytest.skip("needs cuda-bindings")
    checked = CheckedDriver(driver)
    checked("cuInit", 0)
    device = CudaDevice(checked)
    if device.chip < "sm_90" and len(device.chip) == len("sm_90"):
        pytest.skip(f"needs a GPU from sm_90 on: found {device.chip}")
    return device


def test_every_method_does_what_the_port_says(device: CudaDevice) -> None:
    for _, call in call_everything(device):
        call()


def test_kernels_compute(device: CudaDevice) -> None:
    function = device.function(device.load_module(SCALE), "scale")
    stream = device.create_stream()
    x, y = device.allocate(256, stream), device.allocate(256, stream)
    found = np.zeros(64, np.float32)
    given = Parameters(ctypes.c_uint64(x), ctypes.c_float(3), ctypes.c_uint64(y))
    start, stop = device.create_event(is_timed=True), device.create_event(is_timed=True)
    device.copy(x, A.ctypes.data, 256, stream)
    device.record_event(start, stream)
    device.launch(given.launch(function), stream)
    device.record_event(stop, stream)
    device.copy(found.ctypes.data, y, 256, stream)
    device.synchronize_stream(stream)
    np.testing.assert_array_equal(found, 3 * A)
    assert 0 < device.elapsed_s(start, stop) < 1
    message = r"cuLaunchKernel: launch of scale: CUDA_ERROR_INVALID_VALUE"
    with pytest.raises(DeviceError, match=message) as caught:
        device.launch(given.launch(function, threads=2048), stream)
    assert not caught.value.is_sticky


def test_programs_and_their_graphs_and_those_that_make_their_own_streams_compute(device: CudaDevice) -> None:
    loaded, a = DeviceFunction(two_chains(), device), A.copy()
    for scale in (1, 3):
        np.testing.assert_array_equal(loaded(scale * A, B), 2 * scale * A + 2 * B)
    graph = loaded.as_graph(a, B)
    for scale in (1, 5):
        a[:] = scale * A
        np.testing.assert_array_equal(graph.launch()[0], 2 * a + 2 * B)
    graph.close()
    loaded.close()
    loaded = DeviceFunction(compiled(TOKENS, (BUFFER,), (BUFFER,), streams=0), device)
    np.testing.assert_array_equal(loaded(A), 2 * A)
    loaded.close()


def test_programs_on_device_memory_only_enqueue(device: CudaDevice) -> None:
    program = compiled(IN_PLACE, (BUFFER, BUFFER), (), 1, written=(False, True), device_arguments=True)
    loaded, stream = DeviceFunction(program, device), device.create_stream()
    a, b = (device.allocate(4 * N, stream) for _ in range(2))
    found = np.zeros(N, np.float32)
    device.copy(a, A.ctypes.data, 4 * N, stream)
    arrays = [ArrayView(address, (N,), None, np.dtype(np.float32), None) for address in (a, b)]
    assert loaded(*arrays, stream=stream) is None
    device.copy(found.ctypes.data, b, 4 * N, stream)
    device.synchronize_stream(stream)
    np.testing.assert_array_equal(found, 2 * A)
    loaded.close()
