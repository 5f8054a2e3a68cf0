"""The GPU of this machine, opened: the device, how large its cache is, what its sensors say."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from tuner.conditions import Conditions, GpuState
from tuner.device import AbstractDevice
from tuner.runtime.cuda.opening import open_device
from tuner.runtime.gpu_probe import GpuHere
from tuner.runtime.gpu_telemetry import GpuSensors, SensorsError


def no_sensors() -> GpuState | None:
    """Reads nothing."""
    return None


@dataclass(frozen=True, eq=False)
class Gpu:
    """What a target needs of a GPU."""

    device: AbstractDevice
    cache_bytes: int  # of the L2; 0 unknown
    read_sensors: Callable[[], GpuState | None] = no_sensors

    def conditions_since(self, before: GpuState | None) -> Conditions | None:
        """Returns the sensors then and now; None where there are none."""
        after = self.read_sensors()
        return None if before is None or after is None else Conditions(before, after)


def open_gpu(here: GpuHere) -> Gpu:
    """Opens the GPU in this process: its context takes memory there. Raises DeviceError."""
    return Gpu(open_device(), here.facts.l2_bytes, _sensors(here.bus))


def _sensors(bus: str) -> Callable[[], GpuState | None]:
    with contextlib.suppress(SensorsError):
        return GpuSensors(bus).read
    return no_sensors
