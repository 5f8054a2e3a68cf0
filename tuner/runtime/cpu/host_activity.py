"""Reads Linux's counters of processor time: of this machine, and of single processes."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
THROTTLING = (  # of control groups, versions 2 and 1: file, key, seconds per unit
    (Path("/sys/fs/cgroup/cpu.stat"), "throttled_usec", 1e-6),
    (Path("/sys/fs/cgroup/cpu/cpu.stat"), "throttled_time", 1e-9),
)
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
BUSY = (0, 1, 2, 5, 6)  # fields of a line of /proc/stat, proc_stat(5): user, nice, system, irq, softirq
STOLEN = 7
USER_TICKS, SYSTEM_TICKS = 11, 12  # fields of /proc/PID/stat after the name, proc_pid_stat(5)


@dataclass(frozen=True)
class HostActivity:
    """Counters of processor time at one moment, of the machine and of given processes; 0: no such counter.

    The counters are cumulative: only the difference of two readings has a meaning.
    """

    clock_s: float
    busy_s: float  # of all processors
    stolen_s: float  # of all processors, by a hypervisor
    own_s: float  # processor time of the given processes
    waited_s: float  # time that the threads of the given processes were ready to run and did not run
    throttled_s: float  # of this control group


def read_activity(processes: tuple[int, ...]) -> HostActivity:
    """Reads the machine's counters of processor time now, and those of the processes with the given ids.

    ``processes`` are those that do the tuner's work.
    """
    fields = _text(PROC / "stat")[1:9]
    ticks = [int(field) for field in fields] or [0] * (STOLEN + 1)
    return HostActivity(
        clock_s=time.monotonic(),
        busy_s=sum(ticks[field] for field in BUSY) * TICK_S,
        stolen_s=ticks[STOLEN] * TICK_S,
        own_s=sum(_processor_s(process) for process in processes),
        waited_s=sum(_waited_s(process) for process in processes),
        throttled_s=_throttled_s(),
    )


def thread_waited_s() -> float:
    """Returns how many seconds since its start the calling thread was ready to run and did not run.

    0.0 where Linux does not count them.
    """
    options = _text(PROC / "thread-self" / "schedstat")
    return int(options[1]) * 1e-9 if options else 0.0


def _processor_s(process: int) -> float:
    after_name = " ".join(_text(PROC / str(process) / "stat")).rpartition(")")[2].split()
    return sum(int(after_name[field]) for field in (USER_TICKS, SYSTEM_TICKS)) * TICK_S if after_name else 0


def _waited_s(process: int) -> float:
    """Returns the seconds on run queues, summed over all threads of a process.

    Source: sched-stats.txt of the Linux kernel's documentation.
    """
    return sum(int(options[1]) for options in _of_threads(process, "schedstat")) * 1e-9


def _of_threads(process: int, name: str) -> Iterator[list[str]]:
    for folder in (PROC / str(process) / "task").glob("*"):
        if options := _text(folder / name):
            yield options


def _throttled_s() -> float:
    for path, key, unit_s in THROTTLING:
        options = _text(path)
        if key in options:
            return int(options[options.index(key) + 1]) * unit_s
    return 0.0


def _text(path: Path) -> list[str]:
    """Returns the words of a /proc or /sys file; [] where the file is missing or its process has ended."""
    try:
        return path.read_text().split()
    except OSError:
        return []
