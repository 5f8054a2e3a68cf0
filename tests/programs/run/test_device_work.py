"""Launches and copied bytes of a program's call."""

import ctypes

import numpy as np

from tuner.core.gpu import Extent, KernelLaunch
from tuner.core.programs import DeviceWork
from tuner.programs.run.recording_device import RecordingDevice
from tuner.simulator.device.simulated_device import SimulatedDevice

KERNEL = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"


def test_each_direction_of_a_copy_has_its_bytes() -> None:
    work = DeviceWork()
    for to_device, from_device in ((True, False), (False, True), (True, True), (False, False), (True, False)):
        work = work.with_copy(8, to_device=to_device, from_device=from_device)
    assert work == DeviceWork(
        copies_in=2, copied_in_bytes=16, copies_out=1, copied_out_bytes=8, copied_inside_bytes=8
    )


def test_a_recorded_device_counts_launches_and_bytes() -> None:
    device = RecordingDevice(SimulatedDevice())
    host = np.zeros(16, np.float32)
    address, other = device.allocate(64, 0), device.allocate(64, 0)
    device.copy(address, host.ctypes.data, 64, 0)
    device.copy(other + 16, address, 32, 0)
    device.copy(host.ctypes.data, other, 16, 0)
    function = device.function(device.load_module(KERNEL), "k")
    parameters = (ctypes.c_void_p * 1)()
    device.launch(KernelLaunch(function, Extent(1), Extent(1), 0, ctypes.addressof(parameters), 0), 0)
    device.synchronize_stream(0)
    assert device.work == DeviceWork(1, 1, 64, 1, 16, 32)
