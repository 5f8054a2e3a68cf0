"""Measured times of a program: of whole calls, and of the kernels of one call."""

from dataclasses import dataclass
from operator import attrgetter

from tuner.core.reliability import NOT_RECORDED, Reliability

SERIAL_OVERLAP = 1.05  # sum of kernel times over busy time; up to this ratio streams have no benefit


@dataclass(frozen=True)
class KernelTime:
    """The start and the end of one kernel launch on the device's clock, in seconds.

    Raises ValueError for an end before the start.
    """

    kernel: str
    start_s: float  # since the program began
    stop_s: float

    def __post_init__(self) -> None:
        if self.stop_s < self.start_s:
            raise ValueError(f"{self.kernel}: found stop {self.stop_s} s before start {self.start_s} s")


@dataclass(frozen=True)
class ProgramTimes:
    """Measured times of a program: the median of whole calls, and the times of the kernels of one call."""

    call_s: float  # median of whole calls, host to host
    kernels: tuple[KernelTime, ...] = ()  # of one call; () without a device
    streams: int = 0  # number of streams that the program uses
    # 95 %, of the median; of several processes, from the least to the greatest end; None: not known
    interval_s: tuple[float, float] | None = None
    reliability: Reliability = NOT_RECORDED  # of ``call_s``
    processes: int = 1  # in which calls were timed: another one places code and arrays elsewhere in memory

    @property
    def kernel_s(self) -> float:
        """Returns the sum of all kernel times in seconds, as if no kernels overlapped."""
        return sum(kernel.stop_s - kernel.start_s for kernel in self.kernels)

    @property
    def overlap(self) -> float | None:
        """Returns the average number of kernels that run at once while any runs.

        None if no kernel was timed, or if all kernels took 0 s.
        """
        busy_s = busy(self.kernels)
        if busy_s > 0:
            return self.kernel_s / busy_s
        return None

    @property
    def is_serialized(self) -> bool:
        """Returns whether kernels hardly overlap (5 % at most) although the program uses several streams."""
        return self.streams > 1 and len(self.kernels) > 1 and (self.overlap or 0.0) <= SERIAL_OVERLAP


def busy(kernels: tuple[KernelTime, ...]) -> float:
    """Returns the seconds in which at least one kernel runs; overlapping intervals count once."""
    total_s = 0.0
    until_s = float("-inf")
    for kernel in sorted(kernels, key=attrgetter("start_s")):
        total_s += max(0.0, kernel.stop_s - max(kernel.start_s, until_s))
        until_s = max(until_s, kernel.stop_s)
    return total_s
