"""Processes of this machine: time limits, environment variables, locked files, descendants of a child.

First time: a clock without pauses, and the factor of all limits. Then /proc: descendants, states and
variables of processes. Then commands, and files whose locks a forked process must not keep.
"""

import contextlib
import fcntl
import math
import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import final

from tuner.core.errors import UsageError

# A clock of the time in which this process could run, for time limits of child processes.
#
# A pause of all processes (SIGSTOP, Ctrl-Z, a suspended virtual machine) is not a failure of a candidate. A
# waiting process reads the clock in short steps; a step that took far longer than asked was a pause of this
# process, and usually of its children as well. Reasons: docs/decisions/verification-and-workers.md.

TICK_S = 0.1  # a waiting process reads the clock this often
LONGEST_STEP_S = 2 * TICK_S  # at most counted per step: a busy machine wakes a process late
# of the environment; set where all programs run many times slower: in an emulator, under a debugger
FACTOR_VARIABLE = "TUNER_TIME_LIMIT_FACTOR"
LARGEST_FACTOR = 1000.0  # a limit of 10 s becomes three hours
VARIABLE = "TUNER_WORKER"  # has a different value per child; processes that the child starts inherit it
PROCESSES = Path("/proc")
GIVE_UP_S = 1.0  # of killing processes that keep starting processes
DEAD = "ZX"  # states of proc_pid_stat(5)
# struct flock of fcntl(2): the whole file
ALL_BYTES_UNLOCKED = struct.pack("hhqqi4x", fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)
# process-wide on purpose: what os.fork() copies is all of the process
FILES: dict[object, int] = {}


@final
class AvailableTime:
    """A clock of the seconds in which this process ran: without pauses, such as a suspended machine.

    Of the time between two readings at most LONGEST_STEP_S (0.2 s) counts: what is longer was a pause.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_s = clock()
        self._counted_s = 0.0

    def __call__(self) -> float:
        now_s = self._clock()
        self._counted_s += min(now_s - self._looked_s, LONGEST_STEP_S)
        self._looked_s = now_s
        return self._counted_s


def time_limit_factor() -> float:
    """Returns the factor of all time limits of child processes: TUNER_TIME_LIMIT_FACTOR, 1 where it is unset.

    Raises UsageError unless the variable is a number from 1 to 1000.
    """
    text = os.environ.get(FACTOR_VARIABLE, "")
    if not text:
        return 1.0
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 1 <= factor <= LARGEST_FACTOR:
        raise UsageError(
            f"{FACTOR_VARIABLE}: found {text!r}, allowed a number from 1 to {LARGEST_FACTOR:g}",
            hint=f"unset {FACTOR_VARIABLE}",
        )
    return factor


def started_by(process: int, token: str) -> tuple[int, ...]:
    """Returns the ids, ascending, of the descendants of ``process`` and of processes with its ``token``.

    ``token``: value of the environment variable by which a child marks the processes that it starts. Left out
    are descendants with another token, and what they started: each child ends its own.
    """
    stats = {number: _stat_of(number) for number in processes()}
    parents = {number: int(stat[1]) for number, stat in stats.items() if stat and stat[0] not in DEAD}
    marked = {number for number in parents if number != process and variable_of(number, VARIABLE) == token}
    grown = marked | {process}
    while more := {
        number
        for number, parent in parents.items()
        if parent in grown and number not in grown and variable_of(number, VARIABLE) in (None, token)
    }:
        grown |= more
    return tuple(sorted(grown - {process}))


def end_all(process: int, token: str) -> int:
    """Kills the descendants of ``process`` and processes with its ``token``; returns how many there were.

    Repeats it until none is left, for 1 s at most.
    """
    ended: set[int] = set()
    clock = AvailableTime()
    while (started := started_by(process, token)) and clock() < GIVE_UP_S:
        for number in started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        ended.update(started)
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
    stat = _stat_of(process)
    if stat:
        return stat[0]
    return ""


def processes() -> list[int]:
    """Returns the ids of all processes that this process can see in /proc."""
    return [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]


def variable_of(process: int, name: str) -> str | None:
    """Returns an environment variable of a process at its start; None if unset or not readable."""
    try:
        variables = (PROCESSES / str(process) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    values = (
        variable.partition(b"=")[2] for variable in variables if variable.startswith(f"{name}=".encode())
    )
    return next((value.decode(errors="replace") for value in values), None)


def _stat_of(process: int) -> list[str]:
    try:
        return (PROCESSES / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return []


def run_command(
    arguments: list[str], timeout_s: float, clock: Callable[[], float] = time.monotonic
) -> "subprocess.CompletedProcess[str]":
    """Runs a command and returns its exit code, stdout and stderr.

    Raises OSError if it cannot be started, and subprocess.TimeoutExpired after ``timeout_s`` times the
    ``time_limit_factor``; pauses of this process do not count.
    """
    timeout_s *= time_limit_factor()
    available_s = AvailableTime(clock)
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        while True:
            try:
                output, errors = process.communicate(timeout=min(TICK_S, timeout_s))
                return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
            except subprocess.TimeoutExpired as error:
                if available_s() >= timeout_s:
                    process.kill()
                    raise subprocess.TimeoutExpired(arguments, timeout_s) from error
            except BaseException:
                process.kill()
                raise


# The lock of a file, which a forked process does not keep.
#
# A lock belongs to all copies of a descriptor: a process that is forked while another thread has one would
# hold it as long as it lives, and wait for itself.


@contextlib.contextmanager
def owned_lock_file(descriptor: int) -> Iterator[None]:
    """Context manager: owns an open, locked file; unlocks and closes it at the end.

    A forked process closes its copy at once.
    """
    token = object()
    FILES[token] = descriptor
    try:
        yield
    finally:
        if FILES.pop(token, None) is not None:  # else this process was forked since, and has closed its copy
            with contextlib.suppress(OSError):
                # a process forked outside of Python has a copy, too
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # of locks by flock; the next, of locks of open files
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, ALL_BYTES_UNLOCKED)
            os.close(descriptor)


def _close_copies() -> None:
    for descriptor in FILES.values():
        os.close(descriptor)
    FILES.clear()


os.register_at_fork(after_in_child=_close_copies)
