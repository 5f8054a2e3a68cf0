"""Times every launch of a program between two events of its stream."""

from typing import Any, cast

from tuner.device import AbstractDevice, KernelLaunch
from tuner.program_times import KernelTime


class LaunchTimer:
    """Stands before a device: launches are timed, everything else goes through."""

    def __init__(self, device: AbstractDevice) -> None:
        """Marks the start that all times are told from."""
        self._device = device
        self._names: dict[int, str] = {}
        self._timed: list[tuple[str, int, int]] = []  # kernel, events before and behind it
        self._start = device.create_event(is_timed=True)
        device.record_event(self._start, 0)
        device.synchronize_event(self._start)

    def as_device(self) -> AbstractDevice:
        """Returns itself as what programs are loaded on."""
        return cast(AbstractDevice, self)

    def __getattr__(self, name: str) -> Any:
        """Passes on what is not timed."""
        return getattr(self._device, name)

    def function(self, module: int, name: str) -> int:
        """Looks up a kernel and remembers its name."""
        found = self._device.function(module, name)
        self._names[found] = name
        return found

    def launch(self, launch: KernelLaunch, stream: int) -> None:
        """Enqueues a kernel between two events."""
        before, behind = (self._device.create_event(is_timed=True) for _ in range(2))
        self._device.record_event(before, stream)
        self._device.launch(launch, stream)
        self._device.record_event(behind, stream)
        self._timed.append((self._names.get(launch.function, "kernel"), before, behind))

    def take(self) -> tuple[KernelTime, ...]:
        """Waits for the launches so far and returns their times; the next ones are counted anew."""
        times = []
        for name, before, behind in self._timed:
            self._device.synchronize_event(behind)
            start_s = self._device.elapsed_s(self._start, before)
            times.append(KernelTime(name, start_s, start_s + self._device.elapsed_s(before, behind)))
            for event in (before, behind):
                self._device.destroy_event(event)
        self._timed.clear()
        return tuple(times)

    def close(self) -> None:
        """Destroys the start."""
        self.take()
        self._device.destroy_event(self._start)
