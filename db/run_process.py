"""The process that works on a run: stored when it starts, looked for when the run's status is read.

A killed process cannot store that its run is interrupted. A reader does not store it either: only a reader on
the process's machine knows whether the process lives.
"""

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tuner.core.serialization import decode, whole

RUNNING = "running"
INTERRUPTED = "interrupted"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # another one after each boot: random(4)
MACHINE_ID = Path("/etc/machine-id")  # one for each installed system: machine-id(5)
PROCESSES = Path("/proc")
PID_NAMESPACE = Path("/proc/self/ns/pid")  # pid_namespaces(7): ids of processes mean something within it
# fields of /proc/PID/stat after the name, proc_pid_stat(5); START: ticks since the boot
STATE = 0
START = 19
DEAD = "ZX"  # states
MOST_PROCESSES = 2**22  # pid_max of 64 bits, proc_sys_kernel(5)


@dataclass(frozen=True)
class RunProcess:
    """Identifies a process of a Linux machine, across machines, containers and boots."""

    host: str  # a hash: neither the machine's id nor its name leaves it with a database
    boot_id: str
    pid_namespace: str
    pid: Annotated[int, whole(1, MOST_PROCESSES)]
    start_ticks: int


def this_process() -> RunProcess | None:
    """Returns the calling process; None if the system has no /proc as Linux has."""
    try:
        boot_id = BOOT_ID.read_text().strip()
        namespace = str(PID_NAMESPACE.readlink())
        ticks = int(_stat(os.getpid())[START])
    except (OSError, IndexError, ValueError):
        return None
    return RunProcess(_host(boot_id), boot_id, namespace, os.getpid(), ticks)


def present_status(stored: str, process: object) -> str:
    """Returns the stored status of a run or campaign; "interrupted" if it runs and its process has ended.

    ``process``: JSON of a RunProcess; None: unknown, which counts as not ended. Only a process of this
    machine can be found to have ended: one of an earlier boot, or one of this pid namespace.
    """
    if stored != RUNNING or process is None:
        return stored
    is_gone = _is_gone(decode(RunProcess, process, "database: RunProcess"))
    return INTERRUPTED if is_gone else stored


def _is_gone(process: RunProcess) -> bool:
    here = this_process()
    if here is None or here.host != process.host:
        return False
    if here.boot_id != process.boot_id:
        return True
    if here.pid_namespace != process.pid_namespace:
        return False
    try:
        os.kill(process.pid, 0)  # also says that a process lives whose folder in /proc is hidden
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it belongs to another user
    try:
        fields = _stat(process.pid)
        return fields[STATE] in DEAD or int(fields[START]) != process.start_ticks
    except (OSError, IndexError, ValueError):
        return False  # hidden, or it ended just now: the next reader sees that


def _host(boot_id: str) -> str:
    try:
        machine_id = MACHINE_ID.read_text().strip()
    except OSError:  # as in many containers
        machine_id = ""
    return hashlib.sha256(f"{machine_id or boot_id} {platform.node()}".encode()).hexdigest()


def _stat(pid: int) -> list[str]:
    # the fields after the name, which may contain anything: state, parent, ...
    return (PROCESSES / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
