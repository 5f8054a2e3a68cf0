"""A program on a device: pointers arrive, zeros are zeros before every run, memory is given back."""

import ctypes
import gc
from dataclasses import replace

import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tests.texts import text_beside
from tuner.core.gpu import TensorMapLayout
from tuner.core.gpu_code import BufferMap, KernelBuffer, KernelProgram, Launch
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.targets.gpu.arrays import Arguments, LoadedKernels

PTX = text_beside(__file__, "PTX")
BUFFERS = (
    KernelBuffer("c", 4, "output", is_zeroed=True),
    KernelBuffer("workspace", 6, "scratch"),  # no whole number of words
)
PROGRAM = KernelProgram(
    "sm_90", PTX, b"", (Launch("count", (1, 1, 1), (1, 1, 1), 0, ("c", "workspace")),), BUFFERS
)


@pytest.fixture
def stub() -> StubDriver:
    return StubDriver()


def test_arguments_are_the_addresses_of_addresses(stub: StubDriver) -> None:
    launch = Launch("k", (1, 1, 1), (1, 1, 1), 0, ("b", "a", "b"))
    arguments = Arguments(launch, {"a": 0xA0, "b": 0xB0}, stub.open())
    pointers = ctypes.cast(arguments.address, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
    assert [pointers[index][0] for index in range(3)] == [0xB0, 0xA0, 0xB0]


def test_a_tensor_map_is_encoded_for_its_buffer_and_aligned() -> None:
    layout = TensorMapLayout((64, 8), (128,), (64, 8), 6, swizzle=3)
    launch = Launch("k", (1, 1, 1), (1, 1, 1), 0, ("a_map0", "b"), (BufferMap("a_map0", "a", layout),))
    device = SimulatedDevice("sm_90")
    arguments = Arguments(launch, {"a": 0xA00, "b": 0xB0}, device)
    pointers = ctypes.cast(arguments.address, ctypes.POINTER(ctypes.c_uint64))
    assert pointers[0] % 64 == 0
    assert ctypes.string_at(pointers[0], 128) == device.tensor_map(0xA00, layout)
    assert ctypes.c_uint64.from_address(pointers[1]).value == 0xB0


def test_what_begins_as_zeros_does_so_before_every_run(stub: StubDriver) -> None:
    device = stub.open()
    loaded = LoadedKernels(device, PROGRAM)
    c = device.allocate(4, 0)
    run = loaded.work({"c": c})
    for _ in range(3):
        run(0)
    assert ctypes.c_uint32.from_address(c).value == 1
    assert stub.errors == []


def test_what_does_not_is_left_alone(stub: StubDriver) -> None:
    device = stub.open()
    kept = replace(PROGRAM, buffers=(replace(BUFFERS[0], is_zeroed=False), BUFFERS[1]))
    loaded = LoadedKernels(device, kept)
    c = device.allocate(4, 0)
    device.fill(c, 10, 4, 1, 0)
    run = loaded.work({"c": c})
    run(0)
    run(0)
    assert ctypes.c_uint32.from_address(c).value == 12


def test_scratch_memory_is_poisoned_to_its_last_byte(stub: StubDriver) -> None:
    device = stub.open()
    loaded = LoadedKernels(device, PROGRAM)
    loaded.poison()
    loaded.work({"c": device.allocate(4, 0)})(0)
    ((_, workspace),) = loaded._scratch.items()  # noqa: SLF001
    assert ctypes.string_at(workspace, 6) == b"\xff" * 6


def test_code_and_scratch_are_given_back_with_the_program(stub: StubDriver) -> None:
    device = stub.open()
    loaded = LoadedKernels(device, PROGRAM)
    assert stub.live_blocks == 1
    del loaded
    gc.collect()
    assert stub.live_blocks == 0
    assert stub.calls("cuModuleUnload") == 1


def test_a_lost_context_is_nothing_to_complain_of_when_the_program_goes(stub: StubDriver) -> None:
    device = stub.open()
    loaded = LoadedKernels(device, PROGRAM)
    stub.fail("cuMemFreeAsync", 700)
    del loaded  # a warning of a finalizer that raised would be an error here
    gc.collect()
    assert stub.calls("cuMemFreeAsync") == 1
