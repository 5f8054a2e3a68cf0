"""Sensors of a GPU, through the real nvidia-ml-py, on a library that stands for NVML."""

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cuda import stub_nvml
from tuner.runtime.cuda.probe import GpuSensors, SensorsError, slowdowns_in

BUS = "00000000:3b:00.0"
NOT_SUPPORTED = 3  # NVML_ERROR_NOT_SUPPORTED


@pytest.fixture(scope="module")
def pynvml() -> Any:
    return pytest.importorskip("pynvml", reason="needs nvidia-ml-py")


@pytest.fixture
def nvml(pynvml: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    library = stub_nvml.build(tmp_path)
    if library is None:
        pytest.skip("needs a C compiler")
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return library


def test_sensors_are_read_in_base_units(nvml: ctypes.CDLL) -> None:
    state = GpuSensors(BUS).read()
    assert (state.sm_clock_hz, state.memory_clock_hz) == (1.755e9, 2.619e9)
    assert state.temperature_c == 61.0
    assert state.power_w == pytest.approx(512.345)
    assert state.slowdowns == ()


def test_clocks_held_down_are_reported(nvml: ctypes.CDLL) -> None:
    ctypes.c_ulonglong.in_dll(nvml, "stub_reasons").value = 0x1 | 0x4 | 0x40
    assert GpuSensors(BUS).read().slowdowns == ("power cap", "thermal (hardware)")


def test_a_sensor_that_is_missing_is_no_zero(nvml: ctypes.CDLL) -> None:
    ctypes.c_int.in_dll(nvml, "stub_power_result").value = NOT_SUPPORTED
    state = GpuSensors(BUS).read()
    assert state.power_w is None
    assert state.temperature_c == 61.0


def test_a_gpu_that_nvml_does_not_know_is_reported(nvml: ctypes.CDLL) -> None:
    with pytest.raises(SensorsError, match="no clocks or temperatures: NVML: Not Found"):
        GpuSensors("00000000:99:00.0")


def test_without_the_package_it_is_reported_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SensorsError, match=r"no clocks or temperatures: pip install nvidia-ml-py"):
        GpuSensors(BUS)


@pytest.mark.parametrize(
    ("reasons", "names"),
    [
        (0, ()),
        (0x1, ()),  # idle
        (0x2, ()),  # clocks that the user chose
        (0x4, ("power cap",)),
        (0x8 | 0x20 | 0x80, ("hardware slowdown", "thermal (software)", "power brake")),
    ],
)
def test_only_reasons_that_make_it_slower_count(reasons: int, names: tuple[str, ...]) -> None:
    assert slowdowns_in(reasons) == names
