"""The processors that this process may use, and their load before anything is timed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Processors:
    """The processors of this machine, and the limits of this process on their use."""

    present: int  # processors of the machine
    allowed: int  # by the affinity mask of this process: taskset, cpuset
    quota: float | None = None  # of the process's control group, in processors; None: no limit

    @property
    def usable(self) -> int:
        """Returns the number of threads that can run at once without waiting for each other."""
        return self.allowed if self.quota is None else max(1, min(self.allowed, int(self.quota)))

    @property
    def limit(self) -> str:
        """Returns why fewer processors are usable than the machine has; '' where all are usable."""
        if self.usable < self.allowed:
            return f"the quota of the control group (cpu.max) is {self.quota:g} processors"
        if self.allowed < self.present:
            return (
                f"the affinity mask of this process (taskset, cpuset) allows {self.allowed} of {self.present}"
            )
        return ""


@dataclass(frozen=True)
class PresentLoad:
    """The load of the usable processors while this process is idle, in processors."""

    busy: float  # with other programs
    stolen: float  # given away by the hypervisor
