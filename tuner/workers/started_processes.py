"""Finds and kills processes started by a child process, directly or not, by parents and a variable."""

import contextlib
import os
import signal
from pathlib import Path

from tuner.workers.available_time import AvailableTime

VARIABLE = "TUNER_WORKER"  # has a different value per child; processes that the child starts inherit it
PROCESSES = Path("/proc")
GIVE_UP_S = 1.0  # of killing processes that keep starting processes
DEAD = "ZX"  # states of proc_pid_stat(5)


def started_by(process: int, token: str) -> tuple[int, ...]:
    """Returns the ids of the living processes that ``process`` (an id) started, directly or not, ascending.

    They are its descendants, and all processes with ``token`` in their environment variable TUNER_WORKER.
    Left out are the process itself, and a process with another token together with its descendants.
    """
    parents = dict(filter(None, map(_parent_of, processes())))
    found = {number for number in parents if number != process and variable_of(number, VARIABLE) == token}
    grown = found | {process}
    while more := {
        number
        for number, parent in parents.items()
        if parent in grown and number not in grown and variable_of(number, VARIABLE) in (None, token)
    }:
        grown |= more
    return tuple(sorted(grown - {process}))


def end_all(process: int, token: str) -> int:
    """Kills the processes that ``process`` (an id) started, directly or not; returns how many there were.

    They are those of ``started_by``. Repeats until none is left, for at most 1 s (GIVE_UP_S).
    """
    ended: set[int] = set()
    clock = AvailableTime()
    while (found := started_by(process, token)) and clock() < GIVE_UP_S:
        for number in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        ended.update(found)
    return len(ended)


def has_children() -> bool:
    """Returns whether the calling process has any child process, alive or a zombie."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def state_of(process: int) -> str:
    """Returns the state letter of a process ("T": stopped), see proc_pid_stat(5); "": no such process."""
    found = _stat_of(process)
    return found[0] if found else ""


def processes() -> list[int]:
    """Returns the ids of all processes that this process can see in /proc."""
    return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]


def variable_of(process: int, name: str) -> str | None:
    """Returns an environment variable of a process, as at its start; None if unset or not readable.

    Another user's process is not readable, nor one that has ended.
    """
    try:
        variables = (PROCESSES / str(process) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    values = (one.partition(b"=")[2] for one in variables if one.startswith(f"{name}=".encode()))
    return next((value.decode(errors="replace") for value in values), None)


def _parent_of(process: int) -> tuple[int, int] | None:
    found = _stat_of(process)
    return None if not found or found[0] in DEAD else (process, int(found[1]))


def _stat_of(process: int) -> list[str]:
    """Returns the fields of /proc/PID/stat after the name, which may contain anything: state, parent, ..."""
    try:
        return (PROCESSES / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return []
