"""Clocks, temperature, power and clock limiters of a GPU, read through NVML (package nvidia-ml-py)."""

import importlib
from collections.abc import Callable
from typing import Any, final

from tuner.core.errors import TunerError
from tuner.core.gpu_conditions import GpuState

MODULE = "pynvml"  # of nvidia-ml-py
HZ_OF_MHZ = 1e6
W_OF_MW = 1e-3
# nvmlClocksEventReason* of nvml.h that make the GPU slower than it could be; not among them: an idle GPU,
# clocks that the user chose, and clocks synchronised with another GPU
SLOWDOWNS = (
    (0x004, "power cap"),
    (0x008, "hardware slowdown"),
    (0x020, "thermal (software)"),
    (0x040, "thermal (hardware)"),
    (0x080, "power brake"),
)


class SensorsError(TunerError):
    """The error of a GPU whose sensors cannot be read: NVML is missing or does not know the GPU."""


@final
class GpuSensors:
    """The sensors of one GPU, read through NVML: clocks, temperature, power, and what limits the clocks."""

    def __init__(self, bus: str) -> None:
        """Takes the GPU's PCI address, such as "00000000:3b:00.0".

        Raises SensorsError where NVML is missing or does not know the GPU.
        """
        try:
            self._nvml: Any = importlib.import_module(MODULE)
        except ImportError as error:
            raise SensorsError("no clocks or temperatures: pip install nvidia-ml-py") from error
        try:
            self._nvml.nvmlInit()
            self._gpu = self._nvml.nvmlDeviceGetHandleByPciBusId(bus.encode())
        except self._nvml.NVMLError as error:
            raise SensorsError(f"no clocks or temperatures: NVML: {error}") from error

    def read(self) -> GpuState:
        """Reads the sensors, in about a millisecond; a number that the GPU does not report is None.

        ``slowdowns`` is () where nothing slows the GPU and where the GPU does not report it.
        """
        nvml, gpu = self._nvml, self._gpu
        reasons = self._value_or_none(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
        return GpuState(
            sm_clock_hz=_scaled(
                self._value_or_none(lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)), HZ_OF_MHZ
            ),
            memory_clock_hz=_scaled(
                self._value_or_none(lambda: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)), HZ_OF_MHZ
            ),
            temperature_c=_scaled(
                self._value_or_none(lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
                1.0,
            ),
            power_w=_scaled(self._value_or_none(lambda: nvml.nvmlDeviceGetPowerUsage(gpu)), W_OF_MW),
            slowdowns=slowdowns_in(reasons or 0),
        )

    def _value_or_none(self, ask: Callable[[], int]) -> int | None:
        """Returns the result of a query; None where GPU or driver does not support the query."""
        try:
            return ask()
        except self._nvml.NVMLError:
            return None


def slowdowns_in(reasons: int) -> tuple[str, ...]:
    """Returns the names of what lowers a GPU's clocks, such as "power cap".

    ``reasons`` are the bits of nvmlClocksEventReasons; those that do not slow the GPU have no name.
    """
    return tuple(name for bit, name in SLOWDOWNS if reasons & bit)


def _scaled(number: int | None, unit: float) -> float | None:
    return None if number is None else number * unit
