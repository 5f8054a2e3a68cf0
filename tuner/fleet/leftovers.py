"""What a process leaves behind that is killed, ended and deleted by one beside it.

    python -m tuner.fleet.leftovers MARK [FOLDER]

waits until its standard input ends: whoever has started it is gone then, kill -9 included, or has told that
all is well.
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

from tuner.workers.started_processes import DEAD, processes, state_of, variable_of

MARK: Final = "TUNER_LOCAL_FLEET"  # a variable that processes inherit from the first one
SERVER_FILE: Final = "d/postmaster.pid"  # in a server's folder
LOOK_S: Final = 0.05
GIVE_UP_S: Final = 20.0  # of ending what does not end


@contextlib.contextmanager
def cleared(mark: str, folder: Path | None = None) -> Iterator[None]:
    """Ends what is left of a mark's processes and deletes the folder, unless the block ends well."""
    words = (sys.executable, "-m", "tuner.fleet.leftovers", mark, *([] if folder is None else [str(folder)]))
    # a session of its own: what kills the group of this process leaves it
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as watching:
        yield
        assert watching.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody has ended it
            watching.stdin.write(b"well")
            watching.stdin.flush()


def marked(mark: str) -> tuple[int, ...]:
    """Returns the processes that have a mark."""
    return tuple(number for number in processes() if variable_of(number, MARK) == mark)


def clear(mark: str, folder: Path | None) -> None:
    """Ends the processes of a mark, and the server of a folder; deletes the folder."""
    give_up_s = time.monotonic() + GIVE_UP_S
    while _is_something_left(mark, folder) and time.monotonic() < give_up_s:
        time.sleep(LOOK_S)


def _is_something_left(mark: str, folder: Path | None) -> bool:
    """Ends and deletes what there is; says whether there was anything."""
    server = _server_of(folder)
    if server is not None:  # by SIGQUIT it gives its shared memory back, and ends its own processes
        _send(server, signal.SIGQUIT)
        return True
    found = marked(mark)
    for process in found:
        _send(process, signal.SIGKILL)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return bool(found) or (folder is not None and folder.exists())


def _server_of(folder: Path | None) -> int | None:
    """Returns the server that runs in a folder."""
    if folder is None:
        return None
    with contextlib.suppress(OSError, ValueError):  # there is none, or it is about to write this
        server = int((folder / SERVER_FILE).read_text().partition("\n")[0])
        return None if state_of(server) in DEAD else server
    return None


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):  # it has ended
        os.kill(process, number)


def main(mark: str, folder: str = "") -> None:
    """Waits, and clears what is left."""
    if not sys.stdin.buffer.read():
        clear(mark, Path(folder) if folder else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
