"""Times every launch of a program with two events on the stream of the launch."""

from typing import Any, cast

from tuner.core.device import AbstractDevice, KernelLaunch
from tuner.programs.times import KernelTime


class LaunchTimer:
    """A device that times launches and forwards every other call to the wrapped device."""

    def __init__(self, device: AbstractDevice) -> None:
        """Records the event that all times are relative to."""
        self._device = device
        self._names: dict[int, str] = {}
        self._timed: list[tuple[str, int, int]] = []  # kernel, event before, event after the launch
        self._start = device.create_event(is_timed=True)
        device.record_event(self._start, 0)
        device.synchronize_event(self._start)

    def as_device(self) -> AbstractDevice:
        """Returns this object as the device on which programs are loaded."""
        return cast(AbstractDevice, self)

    def __getattr__(self, name: str) -> Any:
        """Returns the attribute of that name of the wrapped device."""
        return getattr(self._device, name)

    def function(self, module: int, name: str) -> int:
        """Looks up a kernel and stores its name for the report."""
        found = self._device.function(module, name)
        self._names[found] = name
        return found

    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Enqueues a kernel between two timed events."""
        before, after = (self._device.create_event(is_timed=True) for _ in range(2))
        self._device.record_event(before, stream)
        self._device.launch(launch, stream)
        self._device.record_event(after, stream)
        self._timed.append((self._names.get(launch.function, "kernel"), before, after))

    def take(self) -> tuple[KernelTime, ...]:
        """Waits for the launches since the last call and returns their times."""
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
        """Destroys all events."""
        self.take()
        self._device.destroy_event(self._start)
