"""Commands on a terminal: a pseudo-terminal that is typed to and read from."""

import os
import pty
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0  # for what is waited for, on a machine that others keep busy


class Terminal:
    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.shown = ""  # so far
        self._descriptor = descriptor

    def await_text(self, text: str) -> None:
        while text not in self.shown:
            assert self._read(), f"ended without {text!r}: {self.shown}"

    def press(self, key: bytes) -> None:
        os.write(self._descriptor, key)

    def end(self) -> int:
        """Reads to the end; returns the exit code, negative for a signal."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        assert select.select([self._descriptor], [], [], LIMIT_S)[0], f"nothing shown: {self.shown}"
        try:
            read = os.read(self._descriptor, 1 << 16)
        except OSError:  # Linux: the last process closed its end
            return False
        self.shown += read.decode(errors="replace")
        return bool(read)


@contextmanager
def on_terminal(command: list[str], **variables: str) -> Iterator[Terminal]:
    """Starts a command on a new terminal, and kills it at the end if it still runs."""
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "200"} | variables
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(command[0], command, environment)
    try:
        yield Terminal(pid, descriptor)
    finally:
        with suppress(ProcessLookupError, ChildProcessError):  # it was waited for
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(descriptor)
