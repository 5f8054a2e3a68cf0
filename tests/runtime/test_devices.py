"""What holds for every device: the driver by its stand-in, the simulated GPU, and one that writes a trace."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from tests.gpu.ptxsim.device.test_kernels import SCALE, Parameters
from tests.runtime.calling_every import KERNEL, call_everything
from tests.support.stub_driver import StubDriver
from tuner.core.device import AbstractDevice
from tuner.core.errors import DeviceError
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.models.recording_device import RecordingDevice

SOURCE = np.arange(64, dtype=np.float32)
DEVICES: dict[str, Callable[[], AbstractDevice]] = {
    "driver": lambda: StubDriver().open(),
    "simulated": SimulatedDevice,
    "simulated, in any order": lambda: SimulatedDevice("sm_90", "random"),
    "recorded": lambda: RecordingDevice(SimulatedDevice()),
}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> AbstractDevice:
    return DEVICES[request.param]()


def test_every_method_does_what_the_port_says(device: AbstractDevice) -> None:
    called = set()
    for name, call in call_everything(device):
        called.add(name)
        call()
    device.free(device.allocate(0, 0), 0)  # nothing can be allocated
    device.synchronize_stream(0)
    assert called == AbstractDevice.__abstractmethods__ - {"elapsed_s"} | {"done"}


def test_kernels_compute(device: AbstractDevice) -> None:
    function = device.function(device.load_module(SCALE), "scale")
    stream = device.create_stream()
    x, y = device.allocate(256, stream), device.allocate(256, stream)
    found = np.zeros(64, np.float32)
    given = Parameters(ctypes.c_uint64(x), ctypes.c_float(3), ctypes.c_uint64(y))
    device.copy(x, SOURCE.ctypes.data, 256, stream)
    device.launch(given.launch(function), stream)
    device.copy(found.ctypes.data, y, 256, stream)
    device.synchronize_stream(stream)
    np.testing.assert_array_equal(found, 3 * SOURCE)


@pytest.mark.parametrize("item_bytes", [1, 2, 4])
def test_fills_take_the_low_bits(device: AbstractDevice, item_bytes: int) -> None:
    address, found = device.allocate(8, 0), np.zeros(8, np.uint8)
    device.fill(address, 0x1_0403_0201, item_bytes, 8 // item_bytes, 0)
    device.copy(found.ctypes.data, address, 8, 0)
    device.synchronize_stream(0)
    assert found.tolist() == [1, 2, 3, 4][:item_bytes] * (8 // item_bytes)
    message = r"(fill|INVALID_VALUE): found items of 8 bytes, allowed \(1, 2, 4\)$"
    with pytest.raises(DeviceError, match=message):
        device.fill(address, 0, 8, 1, 0)


def test_an_image_is_loaded_once_and_a_kernel_looked_up_once(device: AbstractDevice) -> None:
    module = device.load_module(KERNEL)
    assert device.load_module(KERNEL) == module
    assert device.function(module, "k") == device.function(module, "k")
    device.unload_module(module)
    assert device.function(module, "k")  # loaded twice
    device.unload_module(module)
    with pytest.raises(DeviceError, match=r"module 0x[0-9a-f]+"):
        device.function(module, "k")
