"""Without a driver or a GPU there is one line that says what is missing."""

import ctypes

import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tuner.core.device import DeviceError
from tuner.runtime.cuda import opening
from tuner.runtime.cuda.ctypes_driver import CtypesDriver
from tuner.runtime.cuda.driver_calls import CALLS
from tuner.runtime.cuda.opening import open_device, open_driver

NO_DEVICE = 100


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    message = r"^no CUDA driver: libnowhere\.so cannot be loaded; it comes with the NVIDIA driver; nvidia-smi"
    with pytest.raises(DeviceError, match=message):
        open_device(library="libnowhere.so")
    monkeypatch.setattr(opening, "LIBRARY", "libnowhere.so")
    with pytest.raises(DeviceError, match=message):
        open_device()


def test_a_driver_without_a_gpu() -> None:
    stub = StubDriver()
    stub.fail("cuInit", NO_DEVICE)
    message = (
        "^no CUDA GPU can be used: cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected; nvid"
    )
    with pytest.raises(DeviceError, match=message) as caught:
        stub.open()
    assert caught.value.error_name == "CUDA_ERROR_NO_DEVICE"


@pytest.mark.parametrize(("gpus", "ordinal"), [(0, 0), (1, 1), (2, -1)])
def test_a_gpu_that_is_not_there(gpus: int, ordinal: int) -> None:
    stub = StubDriver()
    stub.machine(gpus=gpus)
    with pytest.raises(DeviceError, match=f"CUDA GPU {ordinal}: found {gpus} GPUs, allowed 0 to {gpus - 1};"):
        stub.open(ordinal)


def test_a_second_gpu_is_itself() -> None:
    stub = StubDriver()
    stub.machine(gpus=2)
    assert stub.open(1).name == "stub GPU 1"


def test_a_driver_that_lacks_a_function_is_too_old() -> None:
    driver = CtypesDriver("libc.so.6")
    with pytest.raises(DeviceError, match=r"cuInit: libc\.so\.6 has no cuInit: the CUDA driver is too old"):
        driver.call("cuInit", 0)


def test_without_the_bindings_the_library_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = StubDriver()
    monkeypatch.setattr(opening, "LIBRARY", stub.path)

    def missing() -> None:
        raise ImportError("cuda")

    monkeypatch.setattr(opening, "BindingsDriver", missing)
    assert open_driver().origin == stub.path


def test_what_the_driver_says_of_a_gpu() -> None:
    facts = StubDriver().open().facts
    assert (facts.multiprocessors, facts.memory_bytes, facts.l2_bytes) == (132, 8 << 30, 50 << 20)
    assert (facts.max_shared_bytes, facts.clock_hz, facts.memory_clock_hz) == (232448, 1.755e9, 2.619e9)
    assert (facts.driver_version, facts.has_memory_pools) == ("13.0", True)


def test_the_stand_in_has_every_call_of_the_table() -> None:
    library = ctypes.CDLL(StubDriver().path)
    assert [name for name, call in CALLS.items() if not hasattr(library, call.symbol)] == []
