"""Processes that a child process started, and theirs: found by their parents and by a variable, and ended."""

import contextlib
import os
import signal
from pathlib import Path

from tuner.workers.available_time import AvailableTime

VARIABLE = "TUNER_WORKER"  # a variable of a child's own value, which the processes that it starts inherit
PROCESSES = Path("/proc")
GIVE_UP_S = 1.0  # of ending processes that go on starting others
DEAD = "ZX"  # states of proc_pid_stat(5)


def started_by(process: int, token: str) -> tuple[int, ...]:
    """Returns the living processes below a process, and those that have its token, itself left out.

    One that has the token of another child, which ends with that, is left out with those below it.
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
    """Kills what a process started, and again what that started meanwhile; returns how many those were."""
    ended: set[int] = set()
    clock = AvailableTime()
    while (found := started_by(process, token)) and clock() < GIVE_UP_S:
        for number in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        ended.update(found)
    return len(ended)


def has_children() -> bool:
    """Tells whether this process has any child, alive or not."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def state_of(process: int) -> str:
    """Returns the state of a process as proc_pid_stat(5) has it, "" for none: "T" is stopped."""
    found = _stat_of(process)
    return found[0] if found else ""


def processes() -> list[int]:
    """Returns the processes of this machine."""
    return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]


def variable_of(process: int, name: str) -> str | None:
    """Returns a variable of a process; None where it has none, or is another user's."""
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
    """Returns what follows the name, which may hold anything: state, parent, ..."""
    try:
        return (PROCESSES / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return []
