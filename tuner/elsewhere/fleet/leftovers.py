"""Cleanup after a killed process: a second process ends what the first one started and deletes its files.

    python -m tuner.elsewhere.fleet.leftovers MARK [FOLDER]

waits until its standard input ends. Without a byte on its input the process that started it has ended early,
by kill -9 included, and is cleaned up after.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tuner.runtime.workers.processes import DEAD, processes, state_of, variable_of

MARK: Final = "TUNER_LOCAL_FLEET"  # a variable that processes inherit from the first one
SERVER_FILE: Final = "d/postmaster.pid"  # in a server's folder
LOOK_S: Final = 0.05
GIVE_UP_S: Final = 20.0  # of ending processes that do not end


@contextlib.contextmanager
def cleaned_up_unless_ended(mark: str, folder: Path | None = None) -> Iterator[None]:
    """Context manager: if its block ends by an exception or a kill, processes and files are cleaned up.

    ``mark``: of the processes to kill (variable TUNER_LOCAL_FLEET); ``folder``: to delete, None for none.
    """
    command = [sys.executable, "-m", "tuner.elsewhere.fleet.leftovers", mark]
    if folder is not None:
        command.append(str(folder))
    # a process session of its own: a signal to this process group does not reach it
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as watching:
        yield
        assert watching.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the watching process was killed
            watching.stdin.write(b"well")
            watching.stdin.flush()


def marked(mark: str) -> tuple[int, ...]:
    """Returns the ids of processes whose environment variable TUNER_LOCAL_FLEET is ``mark``."""
    return tuple(number for number in processes() if variable_of(number, MARK) == mark)


def clear(mark: str, folder: Path | None) -> None:
    """Kills the processes whose environment variable TUNER_LOCAL_FLEET is ``mark``; deletes ``folder``.

    ``folder`` None: only processes are killed. Gives up after GIVE_UP_S seconds, without an error.
    """
    give_up_s = time.monotonic() + GIVE_UP_S
    while _is_something_left(mark, folder) and time.monotonic() < give_up_s:
        time.sleep(LOOK_S)


def _is_something_left(mark: str, folder: Path | None) -> bool:
    if folder is not None:
        with contextlib.suppress(OSError, ValueError):  # there is no server, or it is writing this file
            server = int((folder / SERVER_FILE).read_text().partition("\n")[0])
            if state_of(server) not in DEAD:
                # at SIGQUIT it frees its shared memory and ends its own processes
                _send(server, signal.SIGQUIT)
                return True
    left = marked(mark)
    for process in left:
        _send(process, signal.SIGKILL)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return bool(left) or (folder is not None and folder.exists())


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):  # it has ended
        os.kill(process, number)


def main(mark: str, folder: str = "") -> None:
    """Waits until standard input ends; unless a byte was read, kills processes and deletes the folder.

    ``mark``: value of TUNER_LOCAL_FLEET of the processes; ``folder`` "": none.
    """
    if not sys.stdin.buffer.read():
        clear(mark, Path(folder) if folder else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
