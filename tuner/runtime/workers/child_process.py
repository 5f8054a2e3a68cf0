"""The parent's handle of one child process: pipes, output, signals to its process group.

``ChildProcess`` sends and receives messages without waiting, reads the child's memory and step, stops it, and
kills it with all its descendants. ``sleep_until_news`` waits for several children.
"""

import contextlib
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from tuner.runtime.workers.processes import VARIABLE, AvailableTime, end_all, state_of
from tuner.runtime.workers.protocol import STEP_BYTES, Inbox, Message, ServiceSpec, encode

CHUNK_BYTES = 1 << 16  # per read; the capacity of a pipe
TAIL_BYTES = 1 << 16  # of the output searched for an error: LLVM prints its error before a dump of the DAG
OUTPUT_LIMIT_BYTES = 16 << 20  # so that a child that prints endlessly does not fill the disk
LINE_LIMIT = 300  # characters quoted in messages
STATM_BYTES = 256  # proc_pid_statm(5): seven numbers
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
STOP_TIMEOUT_S = 1.0  # SIGSTOP takes effect in 0.1 ms; a longer wait means that the kernel holds the process
TELLING = re.compile(r"stack overflow|LLVM ERROR|Assertion .*failed|terminate called|\berror:|Error:")


class ChildProcess:
    """The parent's handle of a child process in its own session; its pipes never block."""

    def __init__(self, spec: ServiceSpec) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_APPEND)  # so that truncation leaves no hole
        self._fd_step = os.memfd_create("step")  # survives a crash of the child
        child_in, self._fd_out = os.pipe()
        self._fd_in, child_out = os.pipe()
        self._inbox = Inbox()
        self._outbox = bytearray()
        self._is_silent = False  # the child's end of the pipe is closed
        try:
            self._token = uuid.uuid4().hex
            descriptors = (child_in, child_out, self._fd_step)
            self._process = _spawn(spec, self._token, descriptors, self._output.fileno())
        finally:
            os.close(child_in)
            os.close(child_out)
        self._fd_memory = os.open(f"/proc/{self.pid}/statm", os.O_RDONLY)
        os.set_blocking(self._fd_in, False)
        os.set_blocking(self._fd_out, False)
        self.send(spec)

    @property
    def pid(self) -> int:
        """Returns the child's process id, which is also the id of its process group."""
        return self._process.pid

    def send(self, message: Message) -> int:
        """Queues a message for the child and writes what its pipe can take; ``receive`` writes the rest.

        Returns the number of bytes of the message.
        """
        sent = encode(message)
        self._outbox += sent
        self._flush()
        return len(sent)

    def receive(self) -> Message | None:
        """Returns the child's next message, or None if there is none yet; does not wait.

        Raises the errors of pickle for a damaged message.
        """
        self._flush()
        try:
            while chunk := os.read(self._fd_in, CHUNK_BYTES):
                self._inbox.add(chunk)
            self._is_silent = True
        except BlockingIOError:
            pass
        return self._inbox.take()

    def register(self, poll: "select.poll") -> None:
        """Registers the child's pipes with ``poll``: to read always, to write while a message is queued."""
        poll.register(self._fd_in, select.POLLIN)
        if self._outbox:
            poll.register(self._fd_out, select.POLLOUT)

    @property
    def has_ended(self) -> bool:
        """True if the child has exited or has closed its end of the pipe."""
        exited = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return exited is not None or self._is_silent

    @property
    def step(self) -> str:
        """Returns the step that the child has named last (``tuner.core.progress``); "" between steps."""
        name = os.pread(self._fd_step, STEP_BYTES, 0).rstrip(b"\0").decode(errors="ignore")
        return name if name.isprintable() else ""  # a wild pointer, or a stray write, may have changed it

    @property
    def resident_bytes(self) -> int:
        """Returns the bytes of the child's resident memory, without its descendants; 0 if it is ending."""
        try:
            return int(os.pread(self._fd_memory, STATM_BYTES, 0).split()[1]) * PAGE_BYTES
        except (OSError, IndexError):  # the process is ending
            return 0

    @property
    def is_stopped(self) -> bool:
        """True while the child is stopped by a signal, as after SIGSTOP."""
        return state_of(self.pid) == "T"

    def stop(self) -> None:
        """Stops the child's process group by SIGSTOP; waits until it has, at most 1 s (STOP_TIMEOUT_S)."""
        self._signal(signal.SIGSTOP)
        clock = AvailableTime()
        flags = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
        while os.waitid(os.P_PID, self.pid, flags) is None and clock() < STOP_TIMEOUT_S:
            time.sleep(0.0001)

    def go_on(self) -> None:
        """Resumes the child's process group by SIGCONT."""
        self._signal(signal.SIGCONT)

    def forget_output(self) -> None:
        """Empties the file with the child's stdout and stderr, so that it holds only the next call's."""
        os.ftruncate(self._output.fileno(), 0)

    def cut_output(self) -> None:
        """Empties the file with the child's output if it has more than 16 MiB (OUTPUT_LIMIT_BYTES)."""
        if os.fstat(self._output.fileno()).st_size > OUTPUT_LIMIT_BYTES:
            self.forget_output()

    def destroy(self) -> str:
        """Kills the child and its descendants; returns how it ended, in which step, and a line of its output.

        For example "killed by SIGABRT in pass convert-scf-to-cf: LLVM ERROR: out of memory".
        """
        self._signal(signal.SIGSTOP)  # so that the child starts no more processes
        end_all(self.pid, self._token)
        self._signal(signal.SIGKILL)  # before reaping: until then no other group can have this id
        status = self._process.wait()
        how = f"exited with status {status}"
        if status < 0:
            is_known = -status in set(signal.Signals)
            how = f"killed by {signal.Signals(-status).name if is_known else f'signal {-status}'}"
        if self.step:
            how = f"{how} in {self.step}"
        output = self._output.fileno()
        start = max(0, os.fstat(output).st_size - TAIL_BYTES)
        line = quoted_line(os.pread(output, TAIL_BYTES, start).decode(errors="replace"))
        self._output.close()
        for fd in (self._fd_in, self._fd_out, self._fd_step, self._fd_memory):
            os.close(fd)
        if line:
            return f"{how}: {line}"
        return how

    def _flush(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: os.write(self._fd_out, self._outbox)]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # the child is gone: has_ended is True
            self._outbox.clear()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class Waitable(Protocol):
    """A port: objects that ``sleep_until_news`` can wait for, such as a child process or a pipe."""

    def register(self, poll: "select.poll") -> None:
        """Registers with ``poll`` the file descriptors and events that end the wait."""
        ...


def sleep_until_news(children: Iterable[Waitable], limit_s: float) -> None:
    """Sleeps, ``limit_s`` at most, until a child has sent bytes, has ended or can take bytes."""
    poll = select.poll()
    for child in children:
        child.register(poll)
    poll.poll(max(0.0, limit_s) * 1000)


def quoted_line(output: str) -> str:
    """Returns the last line of an output that names an error, else its last line that is not blank.

    At most 300 characters; "" for an output without lines.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = list(filter(TELLING.search, lines))
    line = (telling or lines or [""])[-1]
    return "".join(character if character.isprintable() else "?" for character in line)[:LINE_LIMIT]


def _spawn(
    spec: ServiceSpec, token: str, descriptors: tuple[int, ...], output: int
) -> "subprocess.Popen[bytes]":
    arguments = [*map(str, (*descriptors, os.getpid())), token]
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    variables = {**os.environ, "PYTHONPATH": path}
    for name, value in spec.environment:
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    return subprocess.Popen(
        [sys.executable, "-P", "-u", "-m", "tuner.runtime.workers.child", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=descriptors,
        env={**variables, VARIABLE: token},
        start_new_session=True,
    )
