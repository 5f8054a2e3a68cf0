"""This machine's GPU: the open device, the size of its cache, its sensors."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.core.device import AbstractDevice
from tuner.core.gpu_conditions import Conditions, GpuState, Span
from tuner.runtime.cuda.nvml_sensors import GpuSensors, SensorsError
from tuner.runtime.cuda.opening import open_device
from tuner.runtime.cuda.probe import GpuHere


def no_sensors() -> GpuState | None:
    """Returns None: the sensor reading of a GPU without sensors."""
    return None


@dataclass(frozen=True, eq=False)
class LocalGpu:
    """An opened GPU of this machine: the device, its L2 cache's size, a function that reads its sensors."""

    device: AbstractDevice
    cache_bytes: int  # of the L2; 0: unknown
    read_sensors: Callable[[], GpuState | None] = no_sensors

    def conditions_since(
        self, before: GpuState | None, between: Sequence[GpuState] = ()
    ) -> Conditions | None:
        """Reads the sensors after a measurement; returns the readings before, between and after.

        Those in between are summarized. ``before`` is a reading taken before the measurement, ``between`` are
        readings taken during it. Returns None if ``before`` is None or the GPU has no sensors.
        """
        after = self.read_sensors()
        if before is None or after is None:
            return None
        return Conditions(before, after, Span.of(between) if between else None)


def open_gpu(here: GpuHere) -> LocalGpu:
    """Opens this machine's first GPU, which creates a context in its memory; ``here`` describes the GPU.

    Raises DeviceError where the GPU cannot be opened.
    """
    return LocalGpu(open_device(), here.facts.l2_bytes, _sensors(here.bus))


def _sensors(bus: str) -> Callable[[], GpuState | None]:
    with contextlib.suppress(SensorsError):
        return GpuSensors(bus).read
    return no_sensors
