"""Times every launch of a program with two events on the stream of the launch."""

from typing import Any, cast

from tuner.core.device import AbstractDevice, KernelLaunch
from tuner.programs.times import KernelTime


class LaunchTimer:
    """A wrapper of a device that times each kernel launch and forwards every other call to the device."""

    def __init__(self, device: AbstractDevice) -> None:
        """Records the event that all times are relative to."""
        self._device = device
        self._names: dict[int, str] = {}
        self._timed: list[tuple[str, int, int]] = []  # kernel, event before, event after the launch
        self._start = device.create_event(is_timed=True)
        device.record_event(self._start, 0)
        device.synchronize_event(self._start)

    def as_device(self) -> AbstractDevice:
        """Returns this object, typed as a device, for loading programs."""
        return cast(AbstractDevice, self)

    def __getattr__(self, name: str) -> Any:
        """Returns the attribute of that name of the wrapped device."""
        return getattr(self._device, name)

    def function(self, module: int, name: str) -> int:
        """Returns the device's handle of a kernel, and remembers the kernel's name for the times."""
        found = self._device.function(module, name)
        self._names[found] = name
        return found

    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Enqueues a kernel on ``stream`` between two timed events."""
        before, after = (self._device.create_event(is_timed=True) for _ in range(2))
        self._device.record_event(before, stream)
        self._device.launch(launch, stream)
        self._device.record_event(after, stream)
        self._timed.append((self._names.get(launch.function, "kernel"), before, after))

    def take(self) -> tuple[KernelTime, ...]:
        """Waits for all launches since the last call of this method and returns their times, in launch order.

        Times are relative to the creation of this object.
        """
        times = []
        for name, before, after in self._timed:
            self._device.synchronize_event(after)
            start_s = self._device.elapsed_s(self._start, before)
            times.append(KernelTime(name, start_s, start_s + self._device.elapsed_s(before, after)))
            for event in (before, after):
                self._device.destroy_event(event)
        self._timed.clear()
        return tuple(times)

    def close(self) -> None:
        """Waits for pending launches and destroys its own events; does not close the wrapped device."""
        self.take()
        self._device.destroy_event(self._start)
