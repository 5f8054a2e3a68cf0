"""The trace of a program: every call once, in words without addresses."""

import ctypes

import numpy as np
import pytest

from tests.runtime.calling_every import call_everything
from tuner.core.gpu import AbstractDevice, DeviceError, Extent, KernelLaunch
from tuner.core.programs import DeviceWork
from tuner.programs.run.recording_device import RecordingDevice
from tuner.simulator.device.simulated_device import SimulatedDevice

KERNEL = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n, .param .u64 b) { ret; }
"""


def recorder() -> RecordingDevice:
    return RecordingDevice(SimulatedDevice())


def test_handles_and_addresses_have_names() -> None:
    device = recorder()
    s, t = device.create_stream(), device.create_stream()
    event = device.create_event()
    address = device.allocate(64, s)
    source = np.zeros(16, np.float32)
    device.copy(address + 32, source.ctypes.data, 32, s)
    device.fill(address, 0x3F800000, 4, 8, s)
    device.record_event(event, s)
    device.wait_event(t, event)
    device.free(address, t)
    device.synchronize_stream(0)
    assert device.trace == [
        "create stream -> s0",
        "create stream -> s1",
        "create event -> e0",
        "allocate 64 on s0 -> d0",
        "copy 32 to d0+32 from host on s0",
        "fill d0 with 8 x 0x3f800000 on s0",
        "record e0 on s0",
        "wait for e0 on s1",
        "free d0 on s1",
        "synchronize default",
    ]


def test_a_launch_names_the_kernel_its_sizes_and_its_buffers() -> None:
    device = recorder()
    stream = device.create_stream()
    a, b = device.allocate(64, stream), device.allocate(64, stream)
    function = device.function(device.load_module(KERNEL), "k")
    values = (ctypes.c_uint64 * 3)(a, 7, b + 4)
    first = ctypes.addressof(values)
    pointers = (ctypes.c_void_p * 3)(first, first + 8, first + 16)
    where = ctypes.addressof(pointers)
    device.launch(KernelLaunch(function, Extent(2), Extent(32, 2), 1024, where, 3), stream)
    assert device.trace[-1] == "launch k grid 2x1x1 block 32x2x1 shared 1024 (d0, d1+4) on s0"


def test_every_call_reaches_the_device_and_leaves_a_line() -> None:
    device, called = recorder(), set()
    for name, call in call_everything(device, KERNEL):
        called.add(name)
        before = len(device.trace)
        call()
        assert len(device.trace) == before + (name not in ("function", "done")), name
    assert called == AbstractDevice.__abstractmethods__ - {"elapsed_s"} | {"done"}


def test_a_refused_call_leaves_no_line() -> None:
    device = recorder()
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_HANDLE: found stream 0x7"):
        device.destroy_stream(7)
    assert device.trace == []


def test_the_device_after_it_shows() -> None:
    inner = SimulatedDevice("sm_80")
    device: AbstractDevice = RecordingDevice(inner)
    assert (device.name, device.chip, device.watch) == (inner.name, "sm_80", inner.watch)


# Launches and copied bytes of a program's call.

DEVICE_WORK_KERNEL = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"


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
    function = device.function(device.load_module(DEVICE_WORK_KERNEL), "k")
    parameters = (ctypes.c_void_p * 1)()
    device.launch(KernelLaunch(function, Extent(1), Extent(1), 0, ctypes.addressof(parameters), 0), 0)
    device.synchronize_stream(0)
    assert device.work == DeviceWork(1, 1, 64, 1, 16, 32)
