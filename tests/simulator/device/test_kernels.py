"""Modules of the simulated GPU: parsed once, loaded once, launched with the parameters of the call."""

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.core.gpu import DeviceError, Extent, KernelLaunch, chip_of
from tuner.simulator.device import kernels
from tuner.simulator.device.kernels import SimulatedKernels
from tuner.simulator.device.memory import MemoryKind, SimulatedMemory
from tuner.simulator.launch import PreparedKernel, prepare
from tuner.simulator.ptx.parser import parse
from tuner.simulator.ptx.syntax_tree import PtxKernel, PtxModule

# y[t] = n x[t]
SCALE = text_beside(__file__, "SCALE").encode()


class Parameters:
    """Values as a launch gets them."""

    def __init__(self, *values: Any) -> None:
        self.values = values
        self.pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self.address = ctypes.addressof(self.pointers)
        self.count = len(values)

    def launch(self, function: int, threads: int = 64) -> KernelLaunch:
        """Returns a launch of one block."""
        return KernelLaunch(function, Extent(1), Extent(threads), 0, self.address, self.count)


def unseen(text: str) -> bytes:
    """Returns the module with a comment of its own: no test before has had it parsed."""
    return SCALE + f"// {text}".encode()


def with_numbers() -> tuple[SimulatedMemory, Any]:
    """Returns memory with 64 floats in the first half of a region."""
    memory = SimulatedMemory()
    region = memory.allocate(512, MemoryKind.DEVICE)
    region.bytes[:256].view(np.float32)[:] = np.arange(64)
    return memory, region


def loaded(image: bytes = SCALE) -> tuple[SimulatedKernels, int]:
    found, handles = SimulatedKernels(chip_of("sm_90")), itertools.count(1)
    module, _ = found.load(image, lambda: next(handles))
    return found, found.function(module, "scale", lambda: next(handles))


def test_a_launch_runs_on_the_memory_it_points_into_with_the_values_of_the_call() -> None:
    memory, region = with_numbers()
    found, function = loaded()
    factor = ctypes.c_float(3)
    given = Parameters(ctypes.c_uint64(region.address), factor, ctypes.c_uint64(region.address + 256))
    launch = found.prepare(given.launch(function))
    factor.value = 5  # too late
    simulation = launch.run(memory.near, None)
    assert region.bytes[256:].view(np.float32).tolist() == [3 * number for number in range(64)]
    assert simulation.races == ()
    (touched,) = simulation.touched
    address, reads, writes = touched.address, touched.reads.tolist(), touched.writes.tolist()
    assert (address, reads, writes) == (region.address, [[0, 256]], [[256, 512]])


def test_an_image_is_parsed_once_and_unloaded_by_its_last_user(monkeypatch: pytest.MonkeyPatch) -> None:
    image, parsed = unseen("parsed once"), []

    def parse_and_count(text: str) -> PtxModule:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(kernels, "parse", parse_and_count)
    found, handles = SimulatedKernels(chip_of("sm_90")), itertools.count(1)
    first, is_new = found.load(image, lambda: next(handles))
    second, is_new_again = found.load(image + b"\0", lambda: next(handles))
    assert (first == second, is_new, is_new_again) == (True, True, False)
    function = found.function(first, "scale", lambda: next(handles))
    assert found.function(first, "scale", lambda: next(handles)) == function
    assert (found.unload(first), found.unload(first)) == (False, True)
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_INVALID_HANDLE: found function 0x2, allowed one of a"):
        found.kernel(function)
    third, is_new = found.load(image, lambda: next(handles))
    assert (third != first, is_new, len(parsed)) == (True, True, 1)


def test_a_kernel_is_decoded_once_for_all_launches_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    image, decoded = unseen("decoded once"), []

    def prepare_and_count(module: PtxModule, kernel: PtxKernel) -> PreparedKernel:
        decoded.append(kernel.name)
        return prepare(module, kernel)

    monkeypatch.setattr(kernels, "prepare", prepare_and_count)
    memory, region = with_numbers()
    for factor, (found, function) in ((2, loaded(image)), (5, loaded(image))):
        addresses = ctypes.c_uint64(region.address), ctypes.c_uint64(region.address + 256)
        given = Parameters(addresses[0], ctypes.c_float(factor), addresses[1])
        found.prepare(given.launch(function)).run(memory.near, None)
        assert region.bytes[256:].view(np.float32).tolist() == [factor * number for number in range(64)]
    assert decoded == ["scale"]


OTHER = SCALE.replace(b"entry scale", b"entry other")


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
    unknown = SCALE.replace(b"mul.f32", b"nonsense.f32")
    for code, name, is_sticky, message in (
        (SCALE, "CUDA_ERROR_LAUNCH_FAILED", True, "out of bounds"),
        (unknown, "", False, "the simulator does not know"),
    ):
        found, function = loaded(code)
        given = Parameters(ctypes.c_uint64(64), ctypes.c_float(1), ctypes.c_uint64(64))
        launch = found.prepare(given.launch(function))
        with pytest.raises(DeviceError, match=f"^kernel scale: .*{message}") as caught:
            launch.run(SimulatedMemory().near, None)
        assert (caught.value.error_name, caught.value.is_sticky) == (name, is_sticky)


COUNT = text_beside(__file__, "COUNT").encode()


def test_a_modules_variables_keep_their_content_until_it_is_unloaded() -> None:
    memory = SimulatedMemory()
    region = memory.allocate(4, MemoryKind.DEVICE)
    found, handles = SimulatedKernels(chip_of("sm_90")), itertools.count(1)
    given = Parameters(ctypes.c_uint64(region.address))
    seen = []
    for launches in (2, 1):
        module, _ = found.load(COUNT, lambda: next(handles))
        function = found.function(module, "scale", lambda: next(handles))
        for _ in range(launches):
            found.prepare(given.launch(function, threads=1)).run(memory.near, None)
            seen.append(int(region.bytes.view(np.uint32)[0]))
        assert found.unload(module)
    assert seen == [8, 9, 8]
