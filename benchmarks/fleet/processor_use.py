"""Processor time of processes, as Linux counts it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROCESSES: Final = Path("/proc")
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the name, proc_pid_stat(5)
PARENT: Final = 1
GONE: Final = (FileNotFoundError, ProcessLookupError)  # of a process that has ended meanwhile
TICKS: Final = slice(11, 15)  # user and system, its own and those of its children that have ended


def processor_s(process: int) -> float:
    """Returns the processor seconds of a process and of its children that have ended."""
    return sum(int(field) for field in _fields(process)[TICKS]) / TICKS_PER_S


def family_s(process: int) -> float:
    """Returns the processor seconds of a process and all its descendants.

    A process that ends meanwhile counts in its parent's time.
    """
    return sum(map(_living_s, children_of(process))) + processor_s(process)


def children_of(process: int) -> tuple[int, ...]:
    """Returns the process ids of a process's running children."""
    return tuple(other for other in _processes() if _parent_of(other) == process)


def wakes(process: int) -> int:
    """Returns how often threads of a process slept and were woken."""
    total = 0
    for status in (PROCESSES / str(process) / "task").glob("*/status"):
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        total += int(fields["voluntary_ctxt_switches"])
    return total


def parent_of(process: int) -> int:
    """Returns the process id of a process's parent."""
    return int(_fields(process)[PARENT])


def _processes() -> Iterator[int]:
    return (int(path.name) for path in PROCESSES.iterdir() if path.name.isdigit())


def _parent_of(process: int) -> int | None:
    try:
        return parent_of(process)
    except GONE:
        return None


def _living_s(process: int) -> float:
    try:
        return processor_s(process)
    except GONE:
        return 0.0


def _fields(process: int) -> list[str]:
    return (PROCESSES / str(process) / "stat").read_text().rpartition(") ")[2].split()
