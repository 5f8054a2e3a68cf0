"""Sensors of a GPU, through the real nvidia-ml-py, on a library that stands for NVML."""

import ctypes
import inspect
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.target.scripted_device import ScriptedDevice
from tests.gpu.target.simulated_cuda import FACTS
from tests.runtime.c_libraries import build_library
from tests.support.stub_driver import StubDriver
from tuner.core.dtypes import FLOAT8S, INPUT_DTYPES, TILE_DTYPES
from tuner.core.errors import DeviceError, TunerError
from tuner.core.gpu import CLOCK_FLOP, chip_of
from tuner.core.records import GpuState
from tuner.gpu.driver import probe, roofline, sensors
from tuner.gpu.driver.driver import CALLS, INT, OUT_NAME, CtypesDriver

BUS = "00000000:3b:00.0"
NOT_SUPPORTED = 3  # NVML_ERROR_NOT_SUPPORTED


@pytest.fixture(scope="module")
def pynvml() -> Any:
    return pytest.importorskip("pynvml", reason="needs nvidia-ml-py")


@pytest.fixture
def nvml(pynvml: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    source = Path(__file__).with_name("stub_nvml.c")
    library = ctypes.CDLL(str(build_library(tmp_path / "libnvml_stub.so", source)))
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return library


def test_sensors_are_read_in_base_units_and_one_that_is_missing_is_no_zero(nvml: ctypes.CDLL) -> None:
    power_w: Any = pytest.approx(512.345)
    assert sensors.GpuSensors(BUS).read() == GpuState(1.755e9, 2.619e9, 61.0, power_w)
    ctypes.c_ulonglong.in_dll(nvml, "stub_reasons").value = 0x1 | 0x4 | 0x40
    ctypes.c_int.in_dll(nvml, "stub_power_result").value = NOT_SUPPORTED
    state = sensors.GpuSensors(BUS).read()
    assert (state.power_w, state.temperature_c) == (None, 61.0)
    assert state.slowdowns == ("power cap", "thermal (hardware)")


def test_a_gpu_that_nvml_does_not_know_and_a_missing_package_are_reported(
    nvml: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(sensors.SensorsError, match="no clocks or temperatures: NVML: Not Found"):
        sensors.GpuSensors("00000000:99:00.0")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(sensors.SensorsError, match=r"no clocks or temperatures: pip install nvidia-ml-py"):
        sensors.GpuSensors(BUS)


@pytest.mark.parametrize(
    ("reasons", "names"),
    [
        *((0, ()), (0x1, ()), (0x2, ()), (0x4, ("power cap",))),  # 1: idle, 2: clocks that the user chose
        (0x8 | 0x20 | 0x80, ("hardware slowdown", "thermal (software)", "power brake")),
    ],
)
def test_only_reasons_that_make_it_slower_count(reasons: int, names: tuple[str, ...]) -> None:
    assert sensors.slowdowns_in(reasons) == names


# What driver and GPU are here, asked of the stand-in for libcuda; one line says what is missing.

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@pytest.fixture
def stub() -> StubDriver:
    return StubDriver()


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    message = r"^no CUDA driver: libnowhere\.so cannot be loaded; it comes with the NVIDIA driver; nvidia-smi"
    monkeypatch.setattr(probe, "LIBRARY", "libnowhere.so")
    of_library = partial(probe.open_device, library="libnowhere.so")
    for use in (probe.open_device, of_library, partial(probe.describe_gpu, "libnowhere.so")):
        with pytest.raises(DeviceError, match=message):
            use()


def test_a_driver_that_does_not_start_or_finds_no_gpu(stub: StubDriver) -> None:
    stub.machine(gpus=0)
    with pytest.raises(DeviceError, match="the CUDA driver finds no GPU"):
        probe.describe_gpu(stub.path)
    with pytest.raises(DeviceError, match=r"^the CUDA driver finds no GPU; nvidia-smi shows"):
        stub.open()
    stub.fail("cuInit", NO_DEVICE)
    with pytest.raises(DeviceError, match="cuInit"):
        probe.describe_gpu(stub.path)
    stub = StubDriver()
    stub.fail("cuInit", NO_DEVICE)
    why = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
    with pytest.raises(DeviceError, match=f"^no CUDA GPU can be used: cuInit: {why}; nvid") as caught:
        stub.open()
    assert caught.value.error_name == "CUDA_ERROR_NO_DEVICE"


@pytest.mark.parametrize(("gpus", "ordinal"), [(1, 1), (2, -1)])
def test_a_gpu_that_is_not_there(gpus: int, ordinal: int) -> None:
    stub = StubDriver()
    stub.machine(gpus=gpus)
    with pytest.raises(DeviceError, match=f"CUDA GPU {ordinal}: found {gpus} GPUs, allowed 0 to {gpus - 1};"):
        stub.open(ordinal)


def test_without_bindings_the_library_is_called_which_may_be_too_old(
    stub: StubDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ImportError("cuda")

    monkeypatch.setattr(probe, "LIBRARY", stub.path)
    monkeypatch.setattr(probe, "BindingsDriver", missing)
    assert probe.open_driver().origin == stub.path
    driver = CtypesDriver("libc.so.6")
    with pytest.raises(DeviceError, match=r"cuInit: libc\.so\.6 has no cuInit: the CUDA driver is too old"):
        driver.call("cuInit", 0)


def test_a_gpu_is_described_without_a_context_and_a_second_gpu_is_itself(stub: StubDriver) -> None:
    stub.machine(gpus=2)
    assert stub.open(1).name == "stub GPU 1"
    facts = StubDriver().open().facts
    assert (facts.multiprocessors, facts.memory_bytes, facts.l2_bytes) == (132, 8 << 30, 50 << 20)
    assert (facts.max_shared_bytes, facts.clock_hz, facts.memory_clock_hz) == (232448, 1.755e9, 2.619e9)
    assert (facts.driver_version, facts.has_memory_pools) == ("13.0", True)
    here = probe.describe_gpu(stub.path)
    assert (here.facts.chip, here.facts.multiprocessors) == ("sm_90", 132)
    assert re.fullmatch(r"[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.0", here.bus)
    assert stub.calls("cuDevicePrimaryCtxRetain") == 0


def test_code_for_the_chip_and_for_its_features_runs_here() -> None:
    for name in ("sm_90", "sm_90a"):
        probe.require_chip(chip_of(name), FACTS)


HEADER = Path("/usr/local/cuda/include/cuda.h")


@pytest.mark.parametrize("name", CALLS)
def test_the_bindings_have_the_call_with_as_many_inputs(name: str) -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    parameters = CALLS[name].parameters
    inputs = sum(not parameter.is_output or parameter is OUT_NAME for parameter in parameters)
    assert len(inspect.signature(getattr(driver, name)).parameters) == inputs
    for kind in parameters:
        assert not kind.enum or hasattr(driver, kind.enum)


@pytest.mark.skipif(not HEADER.exists(), reason=f"needs {HEADER}")
@pytest.mark.parametrize("name", CALLS)
def test_the_header_declares_the_call_with_the_same_parameters_and_knows_its_symbol(name: str) -> None:
    """A symbol is the plain name, or a version of it that a macro of the header or an older driver has."""
    text, call = HEADER.read_text(), CALLS[name]
    found = re.search(rf"^CUresult CUDAAPI {name}\(([^;]*)\);", text, re.MULTILINE)
    assert found is not None
    parameters = [part.strip() for part in found[1].split(",") if part.strip() != "void"]
    kinds = [each for kind in call.parameters for each in ((kind, INT) if kind is OUT_NAME else (kind,))]
    pointers = (ctypes.c_void_p, ctypes.c_char_p)
    for kind, parameter in zip(kinds, parameters, strict=True):
        is_pointer = "*" in parameter
        assert not kind.is_output or is_pointer, parameter
        may_be_pointer = kind.is_output or kind.ctype in pointers or "LP_" in str(kind.ctype)
        assert may_be_pointer or not is_pointer, parameter
    defines = rf"^#\s*define {name}\s+.*\b{call.symbol}\b"
    assert call.symbol == name or re.search(defines, text, re.MULTILINE)


# Limits of a GPU: documented flop at its clock, bytes by copies.

H100 = replace(FACTS, multiprocessors=132, clock_hz=1.83e9, memory_bytes=80 << 30)  # SXM5, boost
A100 = replace(FACTS, chip="sm_80", multiprocessors=108, clock_hz=1.41e9)


@pytest.mark.parametrize(
    ("facts", "dtype", "peak"),
    [  # the whitepapers' dense peaks
        *((H100, "f16", 989.4e12), (H100, "bf16", 989.4e12), (H100, "tf32", 494.7e12)),
        *((H100, "i8", 1978.9e12), (H100, "e4m3", 1978.9e12), (A100, "i8", 624e12), (A100, "f16", 312e12)),
        *((A100, "tf32", 156e12), (A100, "f32", 19.5e12), (A100, "f64", 19.5e12)),
    ],
)
def test_the_table_gives_the_peaks_of_the_whitepapers(facts: object, dtype: str, peak: float) -> None:
    assert roofline.documented_flop_per_s(facts, dtype) == pytest.approx(peak, rel=2e-3)  # type: ignore[arg-type]


@pytest.mark.parametrize("chip", CLOCK_FLOP)
def test_every_dtype_that_a_chip_has_instructions_for_has_a_peak(chip: str) -> None:
    of_newer = {*FLOAT8S, *TILE_DTYPES} if chip == "sm_80" else set()
    assert set(CLOCK_FLOP[chip]) == set(INPUT_DTYPES) - of_newer


def test_bandwidth_is_bytes_read_and_written_by_the_best_copy_and_flop_those_documented() -> None:
    device = ScriptedDevice(copy_bytes_per_s=2e12)
    found = roofline.gpu_roofline(device, H100, "f16")
    assert found.bytes_per_s == pytest.approx(4e12)
    assert found.flop_source == "documented, at 1830 MHz"
    assert device.log.count(f"copy {roofline.COPY_BYTES}") == 2 * roofline.COPIES
    assert device.alive == set()
    roofline.copied_bytes_per_s(device, 1 << 30)  # a small GPU is not filled
    assert f"allocate {1 << 27}" in device.log
    with pytest.raises(TunerError, match="found sm_120, allowed sm_80, sm_90: no documented peak"):
        roofline.gpu_roofline(ScriptedDevice(), replace(FACTS, chip="sm_120"), "f16")
