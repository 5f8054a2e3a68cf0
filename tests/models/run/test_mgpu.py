"""The functions that compiled code calls, mapped onto a device that records them; memory that stays there."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.gpu.fusions.simulated import CONVOLUTION, compiled
from tests.gpu.ptxsim.device.test_kernels import Parameters
from tests.models.lowering.compiled import on_simulator
from tests.runtime.calling_every import KERNEL as OF_THREE
from tests.runtime.calling_every import call_everything
from tuner.core.device import AbstractDevice, Extent, KernelLaunch
from tuner.core.device_programs import BufferType, DeviceWork, ResidentBuffer
from tuner.core.errors import CandidateError, DeviceError, Stage
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.run.device_function import ResidentMemory
from tuner.gpu.run.mgpu import SIGNATURES, MgpuTable
from tuner.models.recording_device import RecordingDevice
from tuner.runtime.programs.host_errors import ABORT, PUTS, HostAssertions, HostFaults, with_checks

KERNEL = OF_THREE.replace(b", .param .u32 n, .param .u64 b", b"") + b"\0"  # of one parameter
F32 = 7  # CU_TENSOR_MAP_DATA_TYPE_FLOAT32


class Compiled:
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


def test_every_signature_has_its_method_which_reaches_the_device() -> None:
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
    given = Parameters(ctypes.c_uint64(a))
    code.LaunchKernel(function, 1, 2, 3, 32, 1, 1, 64, s, given.pointers, None, 1)
    code.LaunchClusterKernel(function, 1, 1, 1, 4, 5, 6, 32, 2, 1, 0, s, given.pointers, None, 1)
    code.EventRecord(event, s)
    code.StreamWaitEvent(t, event)
    code.EventSynchronize(event)
    code.EventDestroy(event)
    code.MemFree(a, t)
    code.MemFree(code.MemAlloc(8, s, 1), s)
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
    assert set(MgpuTable(SimulatedDevice()).addresses()) == set(SIGNATURES)


def test_the_first_error_is_kept_and_memory_and_tensor_maps_stay_until_the_end() -> None:
    device, table, code = made()
    code.StreamSynchronize(7)
    code.EventDestroy(9)
    assert code.StreamCreate() is None
    assert device.trace == []
    refused = r"^mgpuStreamSynchronize: CUDA_ERROR_INVALID_HANDLE: .* 0x7"
    with pytest.raises(DeviceError, match=refused) as caught:
        table.error.raise_it()
    assert caught.value.error_name == "CUDA_ERROR_INVALID_HANDLE"
    table.error.raise_it()  # told once
    assert code.StreamCreate()
    _, table, code = made()
    code.StreamDestroy(7)
    shared = code.MemAlloc(64, None, 1)
    ctypes.memset(shared, 1, 64)
    assert code.MemAlloc(64, None, 0) is None
    with pytest.raises(DeviceError, match="mgpuStreamDestroy"):
        table.error.raise_it()
    table.close()
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


def test_a_mistake_of_ours_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    device, table, code = made()
    monkeypatch.setattr(device, "create_event", lambda: 1 / 0)
    code.EventCreate()
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        table.error.raise_it()


def test_what_is_not_served_is_refused() -> None:
    _, table, code = made()
    code.LaunchKernelCooperative(*range(1, 15))
    refused = "mgpuLaunchKernelCooperative: cooperative launches are not supported"
    with pytest.raises(DeviceError, match=refused):
        table.error.raise_it()
    code.SetDefaultDevice(1)
    with pytest.raises(DeviceError, match="mgpuSetDefaultDevice: found device 1, allowed 0"):
        table.error.raise_it()
    code.TensorMapEncodeTiledMemref(1, descriptor(0, 0, 0, 8, 1), 13, 0, 0, 0, 0, None)
    with pytest.raises(DeviceError, match="tensor map: found type 13, allowed 0 to 12"):
        table.error.raise_it()


def test_every_recorded_call_names_its_launch_leaves_a_line_and_is_counted() -> None:
    inner = SimulatedDevice("sm_80")
    device = RecordingDevice(inner)
    assert (device.name, device.chip, device.watch) == (inner.name, "sm_80", inner.watch)
    stream = device.create_stream()
    a, b = device.allocate(64, stream), device.allocate(64, stream)
    given = Parameters(*map(ctypes.c_uint64, (a, 7, b + 4)))
    options = (Extent(2), Extent(32, 2), 1024, given.address, given.count)
    device.launch(KernelLaunch(device.function(device.load_module(OF_THREE), "k"), *options), stream)
    assert device.trace[-1] == "launch k grid 2x1x1 block 32x2x1 shared 1024 (d0, d1+4) on s0"
    recorder, called = RecordingDevice(SimulatedDevice()), set()
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_HANDLE: found stream 0x7"):
        recorder.destroy_stream(7)
    assert recorder.trace == []
    for name, call in call_everything(recorder, OF_THREE):
        called.add(name)
        before = len(recorder.trace)
        call()
        assert len(recorder.trace) == before + (name not in ("function", "done")), name
    assert called == AbstractDevice.__abstractmethods__ - {"elapsed_s"} | {"done"}
    device = RecordingDevice(SimulatedDevice())
    host = np.zeros(16, np.float32)
    address, other = device.allocate(64, 0), device.allocate(64, 0)
    device.copy(address, host.ctypes.data, 64, 0)
    device.copy(other + 16, address, 32, 0)
    device.copy(host.ctypes.data, other, 16, 0)
    function = device.function(device.load_module(KERNEL.replace(b".param .u64 a", b"")), "k")
    device.launch(Parameters().launch(function), 0)
    device.synchronize_stream(0)
    assert device.work == DeviceWork(1, 1, 64, 1, 16, 32)


OF_FOUR = (BufferType("f32", (4,)), np.arange(4, dtype=np.float32).tobytes())
BUFFERS = tuple(ResidentBuffer(*OF_FOUR, is_written=is_written) for is_written in (False, True))


def test_a_graph_shares_weights_and_has_its_own_padding_if_there_is_any() -> None:
    device = SimulatedDevice("sm_90")
    memory, plain = ResidentMemory(device, BUFFERS), ResidentMemory(device, BUFFERS[:1])
    for each in (memory, plain):
        each.load()
    own = memory.for_graph()
    assert own.arguments[0] is memory.arguments[0]
    assert own.arguments[1].content != memory.arguments[1].content
    assert plain.for_graph().arguments == plain.arguments
    for each in (own, memory, plain):
        each.close()
    assert device.counts.allocations == device.counts.frees == 3 + 1
    assert device.reports == ()


@pytest.mark.mlir
def test_graphs_of_a_program_with_padding_give_what_calls_give() -> None:
    rng = np.random.default_rng(3)
    shapes = ((1, 3, 7, 6), (4, 3, 3, 3), (4,), (4,))
    x, *others = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    with on_simulator(compiled(CONVOLUTION).code) as (program, _):
        wanted = program(x, *others)
        graphs = [program.as_graph(x, *others) for _ in range(2)]
        for graph in graphs:
            np.testing.assert_array_equal(graph.launch()[0], wanted)
            graph.close()


def failing(assertions: HostAssertions, *, aborts: bool) -> Callable[[], None]:
    addresses = assertions.addresses()
    puts = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(addresses[PUTS])
    abort = ctypes.CFUNCTYPE(None)(addresses[ABORT])

    def code() -> None:
        puts(b"x is\nodd")
        if aborts:
            abort()

    return code


@pytest.mark.parametrize("aborts", [False, True])
def test_an_assertion_and_another_exception_reach_the_caller(aborts: bool) -> None:
    assertions = HostAssertions(aborts=aborts)
    code = failing(assertions, aborts=aborts)
    with pytest.raises(CandidateError, match=r"^the program's assertion fails: x is odd$") as failure:
        assertions.call(code)
    assert failure.value.stage is Stage.RUN
    assertions.call(lambda: None)  # the next call has forgotten it

    def fail() -> None:
        raise ValueError("no such function")

    with pytest.raises(ValueError, match="no such function"):
        HostAssertions(aborts=aborts).call(fail)


def test_only_so_many_failures_may_keep_a_thread() -> None:
    assertions = HostAssertions(aborts=True, limit=2)
    code = failing(assertions, aborts=True)
    for _ in range(2):
        with pytest.raises(CandidateError, match="assertion fails"):
            assertions.call(code)
    threads = set(threading.enumerate())
    refused = r"^found 2 failed assertions of the program, allowed 2"
    with pytest.raises(CandidateError, match=refused) as error:
        assertions.call(code)
    assert error.value.stage is Stage.RUN
    assert set(threading.enumerate()) <= threads  # one of another test may have ended


TYPES = "<{{isVolatile = false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
LINES = (  # {} stands for an address
    ("    %5 = llvm.load {} : !llvm.ptr -> f32", "%4"),
    ("    llvm.store %5, {} {{alignment = 4 : i64}} : f32, !llvm.ptr", "%4"),
    ('    "llvm.intr.memcpy"({}, {}, %3) ' + TYPES, "%1", "%2"),
    ('    "llvm.intr.memset"({}, %2, %3) : (!llvm.ptr, i8, i64) -> ()', "%1"),
)


def test_each_address_is_checked_in_front_of_its_use_and_a_fault_names_memory_and_code() -> None:
    for line, *addresses in LINES:
        checked = with_checks(f"module {{\n{line.format(*addresses)}\n}}").splitlines()
        expected = line.format(*(f"%checked{number}" for number in range(len(addresses))))
        calls = [number for number, each in enumerate(checked) if "llvm.call @tuner_on_host(" in each]
        assert len(calls) == len(addresses)
        assert max(calls) < checked.index(expected)
    device = SimulatedDevice()
    found: list[DeviceError] = []
    assert device.watch is not None
    faults = HostFaults(device.watch, found.append)
    address = device.allocate(64, 0)
    assert faults.is_fault(address + 8, "a print")
    assert str(found[0]).startswith("host: found a print of byte 8 of d0 (64 bytes), which is device memory")
    assert not faults.is_fault(device.allocate_host(64), "a print")
    assert len(found) == 1
