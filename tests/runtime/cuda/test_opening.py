"""What driver and GPU are here, asked of the stand-in for libcuda; one line says what is missing."""

import ctypes
import re
from pathlib import Path

import pytest

from benchmarks.gpu_check.stub_driver import StubDriver
from tests.targets.gpu.simulated_cuda import FACTS
from tuner.core.gpu import DeviceError, chip_of
from tuner.runtime.cuda import probe
from tuner.runtime.cuda.driver import CALLS, INT, OUT_NAME, CtypesDriver, DriverCall
from tuner.runtime.cuda.probe import describe_gpu, machine_of, open_device, open_driver, require_chip

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    message = r"^no CUDA driver: libnowhere\.so cannot be loaded; it comes with the NVIDIA driver; nvidia-smi"
    with pytest.raises(DeviceError, match=message):
        open_device(library="libnowhere.so")
    monkeypatch.setattr(probe, "LIBRARY", "libnowhere.so")
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
    monkeypatch.setattr(probe, "LIBRARY", stub.path)

    def missing() -> None:
        raise ImportError("cuda")

    monkeypatch.setattr(probe, "BindingsDriver", missing)
    assert open_driver().origin == stub.path


def test_what_the_driver_says_of_a_gpu() -> None:
    facts = StubDriver().open().facts
    assert (facts.multiprocessors, facts.memory_bytes, facts.l2_bytes) == (132, 8 << 30, 50 << 20)
    assert (facts.max_shared_bytes, facts.clock_hz, facts.memory_clock_hz) == (232448, 1.755e9, 2.619e9)
    assert (facts.driver_version, facts.has_memory_pools) == ("13.0", True)


def test_the_stand_in_has_every_call_of_the_table() -> None:
    library = ctypes.CDLL(StubDriver().path)
    assert [name for name, call in CALLS.items() if not hasattr(library, call.symbol)] == []


@pytest.fixture
def stub() -> StubDriver:
    return StubDriver()


def test_a_gpu_is_described_without_a_context(stub: StubDriver) -> None:
    here = describe_gpu(stub.path)
    assert here.facts.chip == "sm_90"
    assert here.facts.multiprocessors == 132
    assert re.fullmatch(r"[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.0", here.bus)
    assert stub.calls("cuDevicePrimaryCtxRetain") == 0


def test_a_driver_without_a_gpu_is_reported(stub: StubDriver) -> None:
    stub.machine(gpus=0)
    with pytest.raises(DeviceError, match="the CUDA driver finds no GPU"):
        describe_gpu(stub.path)


def test_a_driver_that_does_not_start_is_reported(stub: StubDriver) -> None:
    stub.fail("cuInit", NO_DEVICE)
    with pytest.raises(DeviceError, match="cuInit"):
        describe_gpu(stub.path)


def test_a_machine_without_a_driver_is_reported() -> None:
    with pytest.raises(DeviceError, match=r"no CUDA driver: libcuda-of-nobody\.so"):
        describe_gpu("libcuda-of-nobody.so")


@pytest.mark.parametrize("name", ["sm_90", "sm_90a"])
def test_code_for_the_chip_runs_here(name: str) -> None:
    require_chip(chip_of(name), FACTS)
    assert machine_of(chip_of(name), FACTS).chip == name


def test_code_for_another_chip_does_not() -> None:
    with pytest.raises(DeviceError, match="code is for sm_80, the GPU here is Simulated GPU, sm_90"):
        require_chip(chip_of("sm_80"), FACTS)


def test_equal_gpus_with_other_drivers_are_one_class_of_machine() -> None:
    machine = machine_of(chip_of("sm_90"), FACTS)
    assert (machine.name, machine.processor) == ("Simulated GPU", "Simulated GPU, CUDA driver 13.0")
    assert machine_of(chip_of("sm_90"), None).name == "cuda sm_90"


HEADER = Path("/usr/local/cuda/include/cuda.h")


def c_parameters(call: DriverCall) -> int:
    return sum(2 if kind is OUT_NAME else 1 for kind in call.kinds)


@pytest.mark.parametrize("name", CALLS)
def test_the_bindings_have_the_call_with_as_many_inputs(name: str) -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    import inspect

    kinds = CALLS[name].kinds
    inputs = sum(not kind.is_output or kind is OUT_NAME for kind in kinds)
    assert len(inspect.signature(getattr(driver, name)).parameters) == inputs
    for kind in kinds:
        assert not kind.enum or hasattr(driver, kind.enum)


@pytest.mark.parametrize("name", CALLS)
def test_the_header_declares_the_call_with_the_same_parameters(name: str) -> None:
    if not HEADER.exists():
        pytest.skip(f"needs {HEADER}")
    text = HEADER.read_text()
    found = re.search(rf"^CUresult CUDAAPI {name}\(([^;]*)\);", text, re.MULTILINE)
    assert found is not None
    parameters = [part.strip() for part in found[1].split(",") if part.strip() != "void"]
    call = CALLS[name]
    assert len(parameters) == c_parameters(call)
    kinds = [each for kind in call.kinds for each in ((kind, INT) if kind is OUT_NAME else (kind,))]
    for kind, parameter in zip(kinds, parameters, strict=True):
        is_pointer = "*" in parameter
        assert not kind.is_output or is_pointer, parameter
        assert not is_pointer or kind.is_output or _is_pointer(kind.ctype), parameter


@pytest.mark.parametrize("name", CALLS)
def test_the_symbol_is_one_that_the_header_knows(name: str) -> None:
    """A symbol is the plain name, or a version of it that a macro of the header or an older driver has."""
    if not HEADER.exists():
        pytest.skip(f"needs {HEADER}")
    symbol = CALLS[name].symbol
    defines = rf"^#\s*define {name}\s+.*\b{symbol}\b"
    assert symbol == name or re.search(defines, HEADER.read_text(), re.MULTILINE)


def _is_pointer(ctype: object) -> bool:
    return ctype in (ctypes.c_void_p, ctypes.c_char_p) or "LP_" in getattr(ctype, "__name__", "")
