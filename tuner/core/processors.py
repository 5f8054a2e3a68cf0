"""The processors that this process may use, and how busy they are before anything is timed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Processors:
    """The processors of this machine, and what limits their use."""

    present: int  # of the machine
    allowed: int  # by the affinity mask of this process: taskset, cpuset
    quota: float | None = None  # of its control group, as processors; None: no limit

    @property
    def usable(self) -> int:
        """Returns how many threads can run at once without waiting for each other."""
        return self.allowed if self.quota is None else max(1, min(self.allowed, int(self.quota)))

    @property
    def limit(self) -> str:
        """Returns what keeps the number of usable processors below that of the machine; '' for nothing."""
        if self.usable < self.allowed:
            return f"the quota of the control group (cpu.max) is {self.quota:g} processors"
        if self.allowed < self.present:
            return (
                f"the affinity mask of this process (taskset, cpuset) allows {self.allowed} of {self.present}"
            )
        return ""


@dataclass(frozen=True)
class PresentLoad:
    """What the usable processors are busy with while this process does nothing, as numbers of processors."""

    busy: float  # with other programs
    stolen: float  # given away by the hypervisor
