"""Runs a command under a limit of the time that was available to it."""

import subprocess
import time
from collections.abc import Callable

from tuner.workers.available_time import TICK_S, AvailableTime


def run_command(
    arguments: list[str], timeout_s: float, clock: Callable[[], float] = time.monotonic
) -> "subprocess.CompletedProcess[str]":
    """Returns how a command ended and what it printed.

    Raises OSError where it does not start, TimeoutExpired once it was killed because of the limit.
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
