"""The GPU of this machine, opened: the device, how large its cache is, what its sensors say."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.conditions import Conditions, GpuState, Span
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

    def conditions_since(
        self, before: GpuState | None, between: Sequence[GpuState] = ()
    ) -> Conditions | None:
        """Returns the sensors then, meanwhile and now; None where there are none."""
        after = self.read_sensors()
        if before is None or after is None:
            return None
        return Conditions(before, after, Span.of(between) if between else None)


def open_gpu(here: GpuHere) -> Gpu:
    """Opens the GPU in this process: its context takes memory there. Raises DeviceError."""
    return Gpu(open_device(), here.facts.l2_bytes, _sensors(here.bus))


def _sensors(bus: str) -> Callable[[], GpuState | None]:
    with contextlib.suppress(SensorsError):
        return GpuSensors(bus).read
    return no_sensors
