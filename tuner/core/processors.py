"""The processors that this process may use, and their load before anything is timed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Processors:
    """How many processors this machine has, and how many of them this process may use."""

    present: int  # processors of the machine
    allowed: int  # by the affinity mask of this process: taskset, cpuset
    quota: float | None = None  # of the process's control group, in processors; None: no limit

    @property
    def usable(self) -> int:
        """Returns how many threads of this process can run at once, given affinity mask and CPU quota."""
        return self.allowed if self.quota is None else max(1, min(self.allowed, int(self.quota)))

    @property
    def limit(self) -> str:
        """Returns why this process may use fewer processors than the machine has; '' where it may use all."""
        if self.usable < self.allowed:
            return f"the quota of the control group (cpu.max) is {self.quota:g} processors"
        if self.allowed < self.present:
            return (
                f"the affinity mask of this process (taskset, cpuset) allows {self.allowed} of {self.present}"
            )
        return ""


@dataclass(frozen=True)
class PresentLoad:
    """How busy the processors are that this process may use, while it does nothing; 1.0 is one processor."""

    busy: float  # with other programs
    stolen: float  # given away by the hypervisor
