"""The functions that compiled code calls: mapped onto a device, and never raising into compiled code."""

import ctypes
from typing import Any

import numpy as np
import pytest

from tuner.core.gpu import DeviceError
from tuner.programs.run.mgpu import SIGNATURES, MgpuTable
from tuner.programs.run.recording_device import RecordingDevice
from tuner.simulator.device.simulated_device import SimulatedDevice

KERNEL = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a) { ret; }
\0"""
F32 = 7  # CU_TENSOR_MAP_DATA_TYPE_FLOAT32


class Compiled:
    """Calls the functions by their addresses, as compiled code does."""

    def __init__(self, table: MgpuTable) -> None:
        self._addresses = table.addresses()

    def __getattr__(self, name: str) -> Any:
        full = f"mgpu{name}"
        return ctypes.CFUNCTYPE(*SIGNATURES[full])(self._addresses[full])


def made() -> tuple[RecordingDevice, MgpuTable, Compiled]:
    device = RecordingDevice(SimulatedDevice())
    table = MgpuTable(device)
    return device, table, Compiled(table)


def descriptor(*options: int) -> Any:
    return (ctypes.c_int64 * len(options))(*options)


def test_every_function_reaches_the_device() -> None:
    device, table, code = made()
    host = np.arange(16, dtype=np.float32)
    view = descriptor(host.ctypes.data, host.ctypes.data, 4, 2, 4, 4, 1)
    module = code.ModuleLoadJIT(KERNEL, 2)
    assert code.ModuleLoad(KERNEL, len(KERNEL)) == module
    function = code.ModuleGetFunction(module, b"k")
    s, t, event = code.StreamCreate(), code.StreamCreate(), code.EventCreate()
    a = code.MemAlloc(64, s, 0)
    code.Memcpy(a, host.ctypes.data, 64, s)
    code.Memset32(a, -1, 4, s)
    code.Memset16(a, -2, 8, s)
    value = ctypes.c_uint64(a)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(value))
    code.LaunchKernel(function, 1, 2, 3, 32, 1, 1, 64, s, parameters, None, 1)
    code.LaunchClusterKernel(function, 1, 1, 1, 4, 5, 6, 32, 2, 1, 0, s, parameters, None, 1)
    code.EventRecord(event, s)
    code.StreamWaitEvent(t, event)
    code.EventSynchronize(event)
    code.EventDestroy(event)
    code.MemFree(a, t)
    pinned = code.MemAlloc(8, s, 1)
    code.MemFree(pinned, s)
    code.MemHostRegister(host.ctypes.data, 64)
    code.MemHostUnregister(host.ctypes.data)
    code.MemHostRegisterMemRef(2, view, 4)
    code.MemHostUnregisterMemRef(2, view, 4)
    code.SetDefaultDevice(0)
    code.StreamSynchronize(t)
    code.StreamDestroy(t)
    code.ModuleUnload(module)
    code.ModuleUnload(None)
    table.error.raise_it()
    assert device.trace == [
        f"load {len(KERNEL) - 1} bytes -> m0",
        f"load {len(KERNEL)} bytes -> m0",
        *("create stream -> s0", "create stream -> s1", "create event -> e0"),
        "allocate 64 on s0 -> d0",
        "copy 64 to d0 from host on s0",
        "fill d0 with 4 x 0xffffffff on s0",
        "fill d0 with 8 x 0xfffe on s0",
        "launch k grid 1x2x3 block 32x1x1 shared 64 (d0) on s0",
        "launch k grid 4x5x6 block 32x2x1 cluster 1x1x1 (d0) on s0",
        *("record e0 on s0", "wait for e0 on s1", "synchronize e0", "destroy e0"),
        "free d0 on s1",
        *("allocate 8 pinned -> p0", "free pinned p0"),
        *("register 64 bytes of host", "unregister host"),
        *("register 32 bytes of host", "unregister host"),
        *("synchronize s1", "destroy s1", "unload m0"),
    ]


def test_every_signature_has_its_method() -> None:
    assert set(MgpuTable(SimulatedDevice()).addresses()) == set(SIGNATURES)


def test_the_first_error_is_kept_and_later_calls_do_nothing() -> None:
    device, table, code = made()
    code.StreamSynchronize(7)
    code.EventDestroy(9)
    assert code.StreamCreate() is None
    assert device.trace == []
    with pytest.raises(
        DeviceError, match=r"^mgpuStreamSynchronize: CUDA_ERROR_INVALID_HANDLE: .* 0x7"
    ) as caught:
        table.error.raise_it()
    assert caught.value.error_name == "CUDA_ERROR_INVALID_HANDLE"
    table.error.raise_it()  # told once
    assert code.StreamCreate()


def test_a_mistake_of_ours_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    device, table, code = made()
    monkeypatch.setattr(device, "create_event", lambda: 1 / 0)
    code.EventCreate()
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        table.error.raise_it()


def test_memory_that_the_program_touches_itself_is_there_after_an_error() -> None:
    _, table, code = made()
    code.StreamDestroy(7)
    shared = code.MemAlloc(64, None, 1)
    ctypes.memset(shared, 1, 64)
    assert code.MemAlloc(64, None, 0) is None
    with pytest.raises(DeviceError, match="mgpuStreamDestroy"):
        table.error.raise_it()
    table.close()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda code: code.LaunchKernelCooperative(*range(1, 15)),
            "mgpuLaunchKernelCooperative: cooperative launches are not supported",
        ),
        (lambda code: code.SetDefaultDevice(1), "mgpuSetDefaultDevice: found device 1, allowed 0"),
        (
            lambda code: code.TensorMapEncodeTiledMemref(1, descriptor(0, 0, 0, 8, 1), 13, 0, 0, 0, 0, None),
            "tensor map: found type 13, allowed 0 to 12",
        ),
    ],
)
def test_what_is_not_served_is_refused(call: Any, message: str) -> None:
    _, table, code = made()
    call(code)
    with pytest.raises(DeviceError, match=message):
        table.error.raise_it()


def test_a_tensor_map_is_placed_once_and_given_back_at_the_end() -> None:
    device, table, code = made()
    a = code.MemAlloc(1024, None, 0)
    view, box = descriptor(a, a, 16, 8, 16, 16, 1), (ctypes.c_int64 * 2)(4, 8)
    first = code.TensorMapEncodeTiledMemref(2, view, F32, 0, 0, 0, 0, box)
    assert code.TensorMapEncodeTiledMemref(2, view, F32, 0, 0, 0, 0, box) == first
    table.error.raise_it()
    assert device.trace[1] == "tensor map of d0+64 sizes (16, 8) box (8, 4) swizzle 0"
    assert [line for line in device.trace if line.startswith("allocate")][1:] == ["allocate 128 on s0 -> d1"]
    table.close()
    assert device.trace[-1] == "free d1 on default"
