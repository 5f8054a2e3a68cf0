"""The times of a program's calls and kernels, and how much kernels overlap."""

from dataclasses import dataclass

SERIAL_OVERLAP = 1.05  # sum of kernel times over busy time; up to this ratio streams have no benefit


@dataclass(frozen=True)
class KernelTime:
    """The time interval of one launch on the device's clock."""

    kernel: str
    start_s: float  # since the program began
    stop_s: float

    def __post_init__(self) -> None:
        """Raises ValueError for a kernel that stops before it starts."""
        if self.stop_s < self.start_s:
            raise ValueError(f"{self.kernel}: found stop {self.stop_s} s before start {self.start_s} s")


@dataclass(frozen=True)
class ProgramTimes:
    """Times of a program measured on hardware."""

    call_s: float  # median of whole calls, host to host
    kernels: tuple[KernelTime, ...] = ()  # of one call; () without a device
    streams: int = 0  # number of streams that the program uses

    @property
    def kernel_s(self) -> float:
        """Returns the sum of all kernel times in seconds, as if no kernels overlapped."""
        return sum(kernel.stop_s - kernel.start_s for kernel in self.kernels)

    @property
    def overlap(self) -> float | None:
        """Returns the sum of kernel times over the busy time: 1 means no overlap; None without kernels."""
        busy_s = busy(self.kernels)
        return self.kernel_s / busy_s if busy_s > 0 else None

    @property
    def is_serialized(self) -> bool:
        """Returns whether kernels run one after another although the program uses several streams."""
        return self.streams > 1 and len(self.kernels) > 1 and (self.overlap or 0.0) <= SERIAL_OVERLAP


def busy(kernels: tuple[KernelTime, ...]) -> float:
    """Returns the seconds in which at least one kernel runs."""
    total_s, until_s = 0.0, float("-inf")
    for kernel in sorted(kernels, key=lambda each: each.start_s):
        total_s += max(0.0, kernel.stop_s - max(kernel.start_s, until_s))
        until_s = max(until_s, kernel.stop_s)
    return total_s
