"""The program of a child process: ``python -m tuner.runtime.workers.child`` serves calls one by one.

Its arguments are FD_IN FD_OUT FD_STEP PARENT_PID TOKEN. Imports nothing that the service does not need: a
child without a compiler starts in 0.1 s.
"""

import contextlib
import ctypes
import errno
import gc
import os
import pathlib
import signal
import sys
import traceback

from tuner.core.errors import CandidateError, Failure, MachineError, Stage, TunerError, defect_line
from tuner.core.progress import report_steps_to
from tuner.runtime.workers import protocol
from tuner.runtime.workers.processes import end_all, has_children

PR_SET_PDEATHSIG = 1  # prctl(2)
PR_SET_CHILD_SUBREAPER = 36
CHUNK_BYTES = 1 << 16  # per read; the capacity of a pipe
COLLECTED_AFTER = 100_000  # new objects, as of the command: imports make many and no cycles to search for
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class Channel:
    """The child process's ends of the two pipes to its parent; reads and writes block."""

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self._fd_in = fd_in
        self._fd_out = fd_out
        self._inbox = protocol.Inbox()

    def receive(self) -> protocol.Message:
        """Waits for the parent's next message and returns it. Raises EOFError once the pipe is closed."""
        while (message := self._inbox.take()) is None:
            chunk = os.read(self._fd_in, CHUNK_BYTES)
            if not chunk:
                raise EOFError
            self._inbox.add(chunk)
        return message

    def send(self, message: protocol.Message) -> None:
        """Writes a message; waits while the pipe is full.

        Raises the errors of pickle before writing anything.
        """
        rest = memoryview(protocol.encode(message))
        while rest:
            rest = rest[os.write(self._fd_out, rest) :]

    def announce(self, name: str) -> None:
        """Sends an Event and waits for its GoAhead. Raises EOFError once the pipe is closed."""
        self.send(protocol.Event(name))
        if not isinstance(reply := self.receive(), protocol.GoAhead):
            raise TypeError(f"parent answered {type(reply).__name__} to an Event, allowed GoAhead")


def main(fd_in: int, fd_out: int, fd_step: int, parent_pid: int, token: str) -> None:
    """Builds the service that the parent asks for, and serves its calls until the pipe is closed.

    ``token`` marks the processes that a call starts, so that they can be found and ended.
    """
    _die_with(parent_pid)
    gc.set_threshold(COLLECTED_AFTER)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    for fd in (fd_in, fd_out, fd_step):
        os.set_inheritable(fd, False)  # a grandchild that inherited the pipes would hide this child's death
    report_steps_to(lambda name: os.pwrite(fd_step, protocol.step_bytes(name), 0))
    channel = Channel(fd_in, fd_out)
    try:
        spec = channel.receive()  # unpickling imports a service that is a function
        assert isinstance(spec, protocol.ServiceSpec)
        service = spec.service
        if isinstance(service, protocol.Factory):
            service = service.build(channel.announce) if spec.announces else service.build()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must learn of it
        channel.send(_defect(error))
        return
    channel.send(protocol.Ready())
    serve(channel, service, token)


def serve(channel: Channel, service: object, token: str) -> None:
    """Serves calls of the methods of ``service`` until the pipe is closed.

    A call that leaves processes running (found by ``token``) is answered by a Failure.
    """
    while True:
        try:
            request = channel.receive()
        except EOFError:
            return
        assert isinstance(request, protocol.CallRequest)
        _answer(channel, service, request, token)
        del request  # a child that waits holds neither arguments nor a value


def _answer(channel: Channel, service: object, request: protocol.CallRequest, token: str) -> None:
    try:
        value = getattr(service, request.method)(*request.args)
        channel.send(protocol.Reply.of(_left_over(token) or value))
    except CandidateError as error:
        channel.send(protocol.Reply(_left_over(token) or error.failure))
    except BaseException as error:  # noqa: BLE001 - SystemExit too: one odd candidate is only a Failure
        channel.send(_defect(error))


def _left_over(token: str) -> Failure | None:
    ended = end_all(os.getpid(), token) if has_children() else 0
    if ended:
        return Failure(Stage.RUN, f"started {ended} processes that go on after it returned")
    return None


def _defect(error: BaseException) -> protocol.ServiceDefect:
    line = traceback.format_exception_only(error)[0].splitlines()[0]  # survives a __str__ that raises
    if isinstance(error, MemoryError | KeyError):  # whose message is not readable
        line = defect_line(error)
    if isinstance(error, TunerError):  # raised on purpose: the message is for users, the class is not
        line = str(error)
    line = ": ".join([*getattr(error, "__notes__", ()), line])  # what was worked on, by ``add_note``
    is_machines = isinstance(error, MachineError) or (isinstance(error, OSError) and error.errno in DISK_FULL)
    return protocol.ServiceDefect(line, "".join(traceback.format_exception(error)), is_machines)


def _die_with(parent_pid: int) -> None:
    """Makes the kernel kill this process when the parent's thread that started it ends, even by SIGKILL."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # processes that a candidate starts remain descendants, orphaned or not
    if os.getppid() != parent_pid:  # the parent ended before the call of prctl
        os.kill(os.getpid(), signal.SIGKILL)
    with contextlib.suppress(OSError):  # a preference, and not writable in every container
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")  # out of memory: kill the child first


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
