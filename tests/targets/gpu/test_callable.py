"""Tuned GPU programs as callables, on the simulated device: nothing is left allocated, nothing unordered."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.mlir.gpu_matmul import gpu_script
from tuner.core.errors import UsageError
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import KernelProgram
from tuner.core.interfaces import Script
from tuner.core.problem import Matmul
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.targets.gpu.callables import GpuCallable
from tuner.targets.gpu.compiler import GpuCompiler

pytestmark = pytest.mark.mlir
M, N, K = SIZES = (16, 8, 8)
PROBLEM = Matmul(*SIZES)
A = np.arange(M * K, dtype=np.float32).reshape(M, K) / 64
B = np.arange(K * N, dtype=np.float32).reshape(K, N) / 32


@dataclass(frozen=True)
class OnDevice:
    """An array of a device as other packages show theirs."""

    device: SimulatedDevice
    address: int
    shape: tuple[int, ...]
    is_read_only: bool = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = (self.address, self.is_read_only)
        return {"data": data, "shape": self.shape, "typestr": "<f4", "version": 3}

    def content(self) -> Any:
        host = np.empty(self.shape, np.float32)
        self.device.copy(host.ctypes.data, self.address, host.nbytes, 0)
        self.device.synchronize_stream(0)
        return host


def on_device(device: SimulatedDevice, host: Any) -> OnDevice:
    address = device.allocate(host.nbytes, 0)
    device.copy(address, host.ctypes.data, host.nbytes, 0)
    device.synchronize_stream(0)
    return OnDevice(device, address, host.shape)


@pytest.fixture(scope="module")
def program() -> KernelProgram:
    script = Script.of(gpu_script(block=8, depth=8, tile=2))
    compiled = GpuCompiler(chip_of("sm_90"), lambda: None).compile(PROBLEM, script)
    assert compiled.program is not None
    return compiled.program


@pytest.fixture
def device() -> SimulatedDevice:
    return SimulatedDevice("sm_90", order="random")


@pytest.fixture
def matmul(program: KernelProgram, device: SimulatedDevice) -> GpuCallable:
    return GpuCallable(PROBLEM, program, device)


def test_numpy_arrays_are_multiplied(matmul: GpuCallable, device: SimulatedDevice) -> None:
    out = np.empty((M, N), np.float32)
    np.testing.assert_allclose(matmul(A, B), A @ B, rtol=1e-5)
    assert matmul(A, B, out=out) is out
    np.testing.assert_allclose(out, A @ B, rtol=1e-5)
    assert not device.reports


def test_arrays_on_the_device_are_multiplied_there(matmul: GpuCallable, device: SimulatedDevice) -> None:
    a, b, c = (on_device(device, host) for host in (A, B, np.zeros((M, N), np.float32)))
    stream = device.create_stream()
    assert matmul(a, b, out=c, stream=stream) is c
    device.synchronize_stream(stream)
    np.testing.assert_allclose(c.content(), A @ B, rtol=1e-5)
    assert not device.reports


def test_arrays_that_do_not_fit_are_refused(matmul: GpuCallable, device: SimulatedDevice) -> None:
    a, b, c = (on_device(device, host) for host in (A, B, np.zeros((M, N), np.float32)))
    read_only = np.zeros((M, N), np.float32)
    read_only.flags.writeable = False
    calls: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: matmul(A), "found 1 arrays, allowed a, b"),
        (lambda: matmul(B, A), r"a: found float32 of shape \(8, 8\), allowed float32 of shape \(16, 8\)"),
        (lambda: matmul(A.astype(np.float64), B), "a: found float64"),
        (lambda: matmul(np.asfortranarray(A), B), "a: found strides .*, allowed a C-contiguous array; copy"),
        (lambda: matmul(A, np.ma.masked_array(B)), "b: masked arrays are not supported"),
        (lambda: matmul(A, B, out=a), "out: found OnDevice, allowed a numpy array; convert it"),
        (lambda: matmul(A, B, out=read_only), "out: is read-only, but is written to"),
        (lambda: matmul(a, b), r"out: missing: it needs an array on the device, of float32 \(16, 8\)"),
        (lambda: matmul(a, B, out=a), "b: found ndarray, allowed DLPack"),
        (lambda: matmul(a, b, out=b), r"out: found float32 of shape \(8, 8\)"),
        (lambda: matmul(A, B, stream="main"), "stream: found str"),
        (lambda: matmul(a, b, out=replace(c, is_read_only=True)), "^out: is read-only, but is written to$"),
        (lambda: matmul(a, b, out=a), "^out: shares memory with a$"),
    )
    for call, message in calls:
        with pytest.raises(UsageError, match=message):
            call()
    assert matmul(replace(a, is_read_only=True), b, out=c) is c


def test_a_program_is_not_pickled(matmul: GpuCallable) -> None:
    with pytest.raises(TypeError, match=r"load it in the other process: tuner\.load_best\(problem\)$"):
        pickle.dumps(matmul)
