"""Runs a tuner's command on one core for a limited time, and notes when results appear in its log."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

LOOK_EVERY_S = 0.1
GONE_LOOK_S = 0.01
END_S = 10.0  # that a process has to end after an interrupt
GONE_S = 5.0  # until processes of a killed group are gone
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")
SINGLE_THREAD = dict.fromkeys(THREADS, "1")  # whatever a tuner links
# Python writes byte code: pip does when it installs a peer, and a tuner in a clone is not installed by pip
BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}


@dataclass(frozen=True)
class LogWatch:
    """What is looked at while a command runs: a function that counts the results in its log."""

    count: Callable[[], int] = lambda: 0


@dataclass(frozen=True)
class EndedCommand:
    """A command that has ended: its exit status, its wall time, when each result was there."""

    status: int | None  # None: stopped at its limit
    wall_s: float
    seen_s: tuple[float, ...]  # seconds from its start until the first, second ... result was in the log
    output: str = field(repr=False)  # what it printed

    @property
    def failure(self) -> str:
        """Returns why it gave no result, in one line."""
        if self.status is None:
            return f"not finished after {self.wall_s:.0f} s"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        said = (errors or lines or ["it printed nothing"])[-1]
        if self.status < 0:
            return f"crashes (signal {-self.status})"
        return f"ends with {self.status}: {said[:160]}"


def run_for(
    words: tuple[str, ...],
    folder: Path,
    core: int,
    limit_s: float,
    watch: LogWatch,
    variables: dict[str, str] | None = None,  # of the environment
    stop: signal.Signals = signal.SIGKILL,
) -> EndedCommand:
    """Runs a command in ``folder``, pinned to ``core``, in a process group of its own.

    After ``limit_s`` the group gets ``stop``, then SIGKILL; all of its processes are gone when this returns.
    """
    seen_s: list[float] = []
    log = folder / "output.txt"
    started_s = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            ("taskset", "-c", str(core), *words),
            cwd=folder,
            env={**os.environ, **SINGLE_THREAD, **BYTE_CODE, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        is_stopped = False
        try:
            while process.poll() is None:
                elapsed_s = time.monotonic() - started_s
                seen_s += [elapsed_s] * (watch.count() - len(seen_s))
                if elapsed_s >= limit_s:
                    is_stopped = True
                    _stop(process, stop)
                    break
                time.sleep(min(LOOK_EVERY_S, max(0.0, limit_s - elapsed_s)))
        finally:
            wall_s = time.monotonic() - started_s
            _end_group(process.pid)
    if not is_stopped:
        seen_s += [wall_s] * (watch.count() - len(seen_s))
    status = None if is_stopped else process.returncode
    return EndedCommand(status, wall_s, tuple(seen_s), log.read_text(errors="replace"))


def _stop(process: "subprocess.Popen[bytes]", signal_: signal.Signals) -> None:
    os.killpg(process.pid, signal_)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_group(group: int) -> None:
    """Kills what a command left running, and waits until it is gone: it would disturb what is timed next."""
    end_s = time.monotonic() + GONE_S
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    while is_alive(group) and time.monotonic() < end_s:
        time.sleep(GONE_LOOK_S)


def is_alive(group: int) -> bool:
    """True if a process of a group runs; those that have ended and wait for their parent do not count."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group = file.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # ended meanwhile
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False
