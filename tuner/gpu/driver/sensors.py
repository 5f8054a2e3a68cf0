"""The sensors of an NVIDIA GPU, read through NVML: clocks, temperature, power, reasons of slowdowns."""

import importlib
from collections.abc import Callable
from typing import Any, final

from tuner.core.errors import TunerError
from tuner.core.records import GpuState

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
        """Takes the GPU's PCI address, "00000000:3b:00.0". Raises SensorsError without NVML or such a GPU."""
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
        """Returns a reading of the sensors; a number that the GPU does not report is None.

        Takes about a millisecond.
        """
        nvml = self._nvml
        gpu = self._gpu

        def scaled(unit: float, query: Callable[..., int], *arguments: int) -> float | None:
            try:
                return query(gpu, *arguments) * unit
            except nvml.NVMLError:  # GPU or driver does not support the query
                return None

        reasons = scaled(1, nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        return GpuState(
            sm_clock_hz=scaled(HZ_OF_MHZ, nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            memory_clock_hz=scaled(HZ_OF_MHZ, nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
            temperature_c=scaled(1.0, nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            power_w=scaled(W_OF_MW, nvml.nvmlDeviceGetPowerUsage),
            slowdowns=slowdowns_in(int(reasons or 0)),
        )


def slowdowns_in(reasons: int) -> tuple[str, ...]:
    """Returns the names of the reasons in ``reasons``, bits of nvmlClocksEventReasons, such as "power cap".

    Only reasons that make a GPU slower than it could be (SLOWDOWNS).
    """
    return tuple(name for bit, name in SLOWDOWNS if reasons & bit)
