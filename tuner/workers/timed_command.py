"""Runs a command under a limit of available time, see ``AvailableTime``."""

import subprocess
import time
from collections.abc import Callable

from tuner.workers.available_time import TICK_S, AvailableTime


def run_command(
    arguments: list[str], timeout_s: float, clock: Callable[[], float] = time.monotonic
) -> "subprocess.CompletedProcess[str]":
    """Runs a command without input and waits for its end; returns its exit code, stdout and stderr as text.

    Raises OSError where the command does not start, and TimeoutExpired where it was killed after
    ``timeout_s`` seconds; pauses of this process do not count.
    """
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
