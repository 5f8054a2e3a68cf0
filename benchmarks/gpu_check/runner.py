"""Runs the parts of the GPU check in child processes: a crash, hang or exception costs one check."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks.gpu_check.checks import CheckOutcome, PartResult, Row, failed
from benchmarks.gpu_check.device_under_test import Bed

ROOT = Path(__file__).parents[2]
ENDING_S = 10.0  # for a child that has sent everything: contexts are destroyed


@dataclass
class _Told:
    """The lines that the child of a part has sent so far."""

    heard: Callable[[], None]  # is called after each outcome
    names: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    next: int = 0  # check to go on with
    begun: int | None = None  # that has no outcome yet
    begun_s: float = 0.0  # on this process's clock
    limit_s: float = 0.0  # of the check that was begun

    def hear(self, line: dict[str, Any]) -> None:
        """Takes one line."""
        if "checks" in line:
            self.names = line["checks"]
        elif "begin" in line:
            self.begun, self.begun_s, self.limit_s = line["begin"], time.monotonic(), line["limit_s"]
        else:
            outcome = CheckOutcome(line["status"], line["words"], line["facts"])
            self.rows.append(Row(self.names[line["done"]], outcome, line["seconds"]))
            self.next, self.begun = line["done"] + 1, None
            self.heard()

    def give_up(self, options: str) -> None:
        """Fails the check that was begun."""
        assert self.begun is not None
        seconds = time.monotonic() - self.begun_s
        self.rows.append(Row(self.names[self.begun], failed(options), seconds))
        self.next, self.begun = self.begun + 1, None
        self.heard()


@dataclass(frozen=True)
class Child:
    """How the child processes of a part are started: ``benchmarks.gpu_check.child``, or another's module."""

    module: str = "benchmarks.gpu_check.child"
    options: tuple[str, ...] = ()  # in addition to those of every child
    python: tuple[str, ...] = (sys.executable,)


def run_part(
    part: str,
    bed: Bed,
    limit_s: float,
    child: Child = Child(),
    after_row: Callable[[PartResult], None] = lambda _: None,
) -> PartResult:
    """Runs a part until it is done or its seconds are over; restarts a child process that ends early.

    ``after_row`` is called with what is known of the part whenever a check has an outcome.
    """
    began_s = time.monotonic()

    def heard() -> None:
        seconds = time.monotonic() - began_s
        after_row(PartResult(part, tuple(given.rows), tuple(given.names[given.next :]), seconds, limit_s))

    given = _Told(heard)
    while (left_s := limit_s - (time.monotonic() - began_s)) > 0:
        before = given.next
        error = _run_child(_command(part, bed, given.next, left_s, child), given, left_s)
        if given.begun is not None:
            if not error:
                break  # the part's seconds were over in the middle of a check
            given.give_up(error)
        elif error:
            given.rows.append(Row("end" if given.names else "start", failed(error), 0.0))
        if given.next in (before, len(given.names)):
            break
    seconds = time.monotonic() - began_s
    if not given.names and not given.rows:
        given.rows.append(Row("start", failed(f"nothing was asked within {limit_s:g} s"), seconds))
    return PartResult(part, tuple(given.rows), tuple(given.names[given.next :]), seconds, limit_s)


def _command(part: str, bed: Bed, start: int, left_s: float, child: Child) -> list[str]:
    options = [*child.python, "-m", child.module, part, "--device", bed.device, "--chip", bed.chip]
    options += ["--start", str(start), "--limit", f"{left_s:.1f}", *child.options]
    if bed.earlier is not None:
        options += ["--earlier", str(bed.earlier)]
    return options + (["--quick"] if bed.is_quick else [])


def _run_child(command: list[str], given: _Told, left_s: float) -> str:
    """Reads a child's lines; returns why the child ended early, "" where it did not or the time was over."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            [*command, "--pipe", str(writing)],
            cwd=ROOT,
            pass_fds=(writing,),
            stdin=subprocess.DEVNULL,
            stdout=complaints,
            stderr=complaints,
            start_new_session=True,
        )
        os.close(writing)
        late: str | None = ""
        try:
            with os.fdopen(reading, "rb", buffering=0) as pipe:
                late = _hear(pipe, given, left_s)
        finally:
            code = _end(child, 0.0 if late is not None else ENDING_S)
        if late is not None:
            return late
        return "" if code == 0 else f"{_ended(code)}: {_last_line(complaints)}"


def _hear(pipe: IO[bytes], given: _Told, left_s: float) -> str | None:
    """Reads lines to the end.

    Returns why reading stopped before, "" for the end of the part's time, or None.
    """
    start_s, rest = time.monotonic(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            now_s = time.monotonic()
            part_s, check_s = start_s + left_s - now_s, given.begun_s + given.limit_s - now_s
            if part_s <= 0:
                return ""
            if given.begun is not None and check_s <= 0:
                return f"no result within {given.limit_s:g} s"
            if not selector.select(part_s if given.begun is None else min(part_s, check_s)):
                continue
            taken = pipe.read(65536)
            if not taken:
                return None
            *lines, rest = (rest + taken).split(b"\n")
            for line in lines:
                given.hear(json.loads(line))


def _end(child: "subprocess.Popen[bytes]", retry_limit_s: float) -> int:
    """Waits for the child, then kills the child and its processes; returns the child's exit code."""
    try:
        return child.wait(retry_limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.wait()


def _ended(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _last_line(complaints: IO[bytes]) -> str:
    complaints.seek(0)
    lines = [line.strip() for line in complaints.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
