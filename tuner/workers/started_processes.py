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
    parents = dict(filter(None, map(_parent_of, _numbers())))
    found = {number for number in parents if number != process and _token_of(number) == token}
    grown = found | {process}
    while more := {
        number
        for number, parent in parents.items()
        if parent in grown and number not in grown and _token_of(number) in (None, token)
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


def _numbers() -> list[int]:
    return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]


def _parent_of(process: int) -> tuple[int, int] | None:
    found = _stat_of(process)
    return None if not found or found[0] in DEAD else (process, int(found[1]))


def _stat_of(process: int) -> list[str]:
    """Returns what follows the name, which may hold anything: state, parent, ..."""
    try:
        return (PROCESSES / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return []


def _token_of(process: int) -> str | None:
    """Returns the token of a process; None where it has none, or is another user's."""
    try:
        variables = (PROCESSES / str(process) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    name = VARIABLE.encode() + b"="
    values = (one.removeprefix(name) for one in variables if one.startswith(name))
    return next((value.decode(errors="replace") for value in values), None)
