"""What one call of a program asks of a device, and the times of calls and kernels."""

from dataclasses import dataclass, fields, replace

from tuner.core.reliability import NOT_RECORDED, Reliability


@dataclass(frozen=True)
class DeviceWork:
    """Kernel launches and copied bytes of one call of a program; graph launches are not counted."""

    launches: int = 0
    copies_in: int = 0  # from host to device memory
    copied_in_bytes: int = 0
    copies_out: int = 0  # from device to host memory
    copied_out_bytes: int = 0
    copied_inside_bytes: int = 0  # from device to device memory

    def with_launch(self) -> "DeviceWork":
        return replace(self, launches=self.launches + 1)

    def since(self, earlier: "DeviceWork") -> "DeviceWork":
        names = [field.name for field in fields(self)]
        return DeviceWork(**{name: getattr(self, name) - getattr(earlier, name) for name in names})

    def with_copy(self, size_bytes: int, *, to_device: bool, from_device: bool) -> "DeviceWork":
        """Returns this work and a copy of ``size_bytes`` bytes; a copy from host to host changes nothing."""
        if to_device and from_device:
            return replace(self, copied_inside_bytes=self.copied_inside_bytes + size_bytes)
        if to_device:
            total = self.copied_in_bytes + size_bytes
            return replace(self, copies_in=self.copies_in + 1, copied_in_bytes=total)
        if from_device:
            total = self.copied_out_bytes + size_bytes
            return replace(self, copies_out=self.copies_out + 1, copied_out_bytes=total)
        return self


SERIAL_OVERLAP = 1.05  # sum of kernel times over busy time; up to this ratio streams have no benefit


@dataclass(frozen=True)
class KernelTime:
    """The start and the end of one kernel launch on the device's clock, in seconds."""

    kernel: str
    start_s: float  # since the program began
    stop_s: float

    def __post_init__(self) -> None:
        if self.stop_s < self.start_s:
            raise ValueError(f"{self.kernel}: found stop {self.stop_s} s before start {self.start_s} s")


@dataclass(frozen=True)
class ProgramTimes:
    """Measured times of a program: the median of whole calls, and the kernels of one call."""

    call_s: float  # median of whole calls, host to host
    kernels: tuple[KernelTime, ...] = ()  # of one call; () without a device
    streams: int = 0  # number of streams that the program uses
    interval_s: tuple[float, float] | None = None  # 95 %, of the median; None: not known
    reliability: Reliability = NOT_RECORDED  # of ``call_s``

    @property
    def kernel_s(self) -> float:
        """Returns the sum of all kernel times in seconds, as if no kernels overlapped."""
        return sum(kernel.stop_s - kernel.start_s for kernel in self.kernels)

    @property
    def overlap(self) -> float | None:
        """Returns the average number of kernels that run at once, while any does; None: none was timed."""
        busy_s = busy(self.kernels)
        return self.kernel_s / busy_s if busy_s > 0 else None

    @property
    def is_serialized(self) -> bool:
        """Returns whether kernels hardly overlap (5 % at most) although the program uses several streams."""
        return self.streams > 1 and len(self.kernels) > 1 and (self.overlap or 0.0) <= SERIAL_OVERLAP


def busy(kernels: tuple[KernelTime, ...]) -> float:
    """Returns the seconds in which at least one kernel runs; overlapping intervals count once."""
    total_s, until_s = 0.0, float("-inf")
    for kernel in sorted(kernels, key=lambda each: each.start_s):
        total_s += max(0.0, kernel.stop_s - max(kernel.start_s, until_s))
        until_s = max(until_s, kernel.stop_s)
    return total_s
