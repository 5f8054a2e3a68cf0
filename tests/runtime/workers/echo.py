"""Services that child processes of the tests serve: no pytest is imported here, so a child starts at once."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tuner.core import progress
from tuner.core.errors import CandidateError, Stage
from tuner.runtime.workers.protocol import Factory, ServiceSpec


class Echo:
    """A service for these tests."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce

    def stumble(self, what: str) -> None:
        """Raises an error that says what the call was at."""
        error = IndexError("index out of range")
        error.add_note(f"a fusion of {what}")
        raise error

    def echo(self, value: object) -> object:
        return value

    def environment(self, names: tuple[str, ...]) -> tuple[str | None, ...]:
        return tuple(os.environ.get(name) for name in names)

    def announce_twice(self) -> str:
        self._announce("first")
        self._announce("second")
        return "done"

    def nap(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    def work_on(self, name: str, method: str, *arguments: object) -> object:
        """Calls a method of this service as the step ``name``."""
        with progress.step(name):
            return getattr(self, method)(*arguments)

    def refuse(self) -> None:
        raise CandidateError(Stage.RESOURCES, "too many registers")

    def lock(self) -> object:
        return threading.Lock()  # does not pickle

    def shout(self, mebibytes: int) -> None:
        for _ in range(mebibytes):
            os.write(2, b"y" * (1 << 20))

    def hold(self, mebibytes: int) -> None:
        """Holds memory until the process is killed."""
        held = b"y" * (mebibytes << 20)
        time.sleep(1000)
        del held

    def fill_disk(self) -> None:
        Path("/dev/full").write_text("one byte too many")

    def die(self, number: int) -> None:
        os.kill(os.getpid(), number)
        time.sleep(10)

    def slam(self) -> None:
        """Closes every pipe, as code that turns itself into a daemon does."""
        os.closerange(3, 256)
        time.sleep(1000)

    def babble(self) -> None:
        """Writes garbage where messages go, as a wild pointer may."""
        for fd in range(3, 256):
            try:
                os.write(fd, (7).to_bytes(8, "little") + b"garbage")
            except OSError:
                continue
        time.sleep(1000)

    def spawn(self) -> int:
        """Starts a process that leaves the session, as a daemon does; returns its id."""
        process = os.fork()
        if process == 0:
            os.setsid()
            time.sleep(1000)
            os._exit(0)
        return process

    def wait_for(self, folder: str) -> str:
        """Says who it is by a file, and returns once another one is there."""
        unfinished = Path(folder, "unfinished")
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(Path(folder, "process"))
        while not Path(folder, "go").exists():
            time.sleep(0.01)
        return "done"

    def die_later(self) -> None:
        threading.Timer(0.05, os._exit, (4,)).start()


class Refusing:
    """A factory whose process dies."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        os.write(2, b"LLVM ERROR: no such processor\n")
        os.abort()


class Mortal(Echo):
    """Is built once; the next so many that are built are killed, as by a machine short of memory."""

    def __init__(self, announce: Callable[[str], None], log: str, deaths: int) -> None:
        super().__init__(announce)
        built = Path(log).read_text() if Path(log).exists() else ""
        Path(log).write_text(f"{built}.")
        if 1 <= len(built) <= deaths:
            os.kill(os.getpid(), signal.SIGKILL)

    def stand_still_once(self, log: str) -> str:
        """Is stopped by a signal in the first call."""
        if not Path(log).exists():
            Path(log).write_text("stopped")
            os.kill(os.getpid(), signal.SIGSTOP)
        return "done"

    def stand_still(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


class Broken:
    """A factory that raises."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        from tests.fakes import BrokenTarget  # the other services start without numpy

        BrokenTarget()


def spec_of(name: str) -> ServiceSpec:
    return ServiceSpec("echo", Factory(f"{__name__}:{name}"), announces=True)
