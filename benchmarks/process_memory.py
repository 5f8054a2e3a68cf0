"""Memory of a process and of all processes that it has started, as Linux counts it.

``python -m benchmarks.process_memory PID`` polls the memory, and prints a HeldMemory for each line that it
reads: ``watched_memory`` starts it, so that no thread of the watched process has to run.
"""

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

POLLED_S = 0.02
HELD = ("RssAnon:", "RssShmem:")  # in /proc/PID/status: without pages of files, which processes share
KIB = 1024
# PF_FORKNOEXEC in /proc/PID/stat: the process was forked, and has its parent's memory until it calls exec
SHARES_MEMORY = 0x40


@dataclass(frozen=True)
class HeldMemory:
    """Bytes that a process and its descendants hold: the peak since it is watched, now, and its own now."""

    peak_bytes: int
    now_bytes: int
    own_bytes: int


def tree_bytes(pid: int, without: int = 0) -> int:
    """Returns the bytes that a process and its descendants hold, without pages of mapped files.

    ``without``: the id of a descendant that does not count, nor do its own. A process that ends meanwhile
    counts as 0, and so does a descendant that has not called exec: it has its parent's memory.
    """
    total = 0
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        if process == without:
            continue
        with contextlib.suppress(OSError):
            if process == pid or not _shares_memory(process):
                total += held_bytes(process)
            waiting += _children(process)
    return total


def _shares_memory(pid: int) -> bool:
    _, _, after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")
    *_, flags = after_name.split()[:7]  # state, ppid, pgrp, session, tty_nr, tpgid, flags
    return bool(int(flags) & SHARES_MEMORY)


def held_bytes(pid: int) -> int:
    """Returns the bytes that a process holds, without those of its children and pages of mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) * KIB for line in lines if line.startswith(HELD))


def _children(pid: int) -> list[int]:
    pids: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended
            pids += map(int, (task / "children").read_text(encoding="utf-8").split())
    return pids


@contextlib.contextmanager
def watched_memory() -> Iterator[Callable[[], HeldMemory]]:
    """Context manager: gives a function that returns what this process and its descendants hold.

    The peak is that from the beginning of the context on. The process that watches does not count.
    """
    command = [sys.executable, "-m", "benchmarks.process_memory", str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        requests = watcher.stdin
        replies = watcher.stdout

        def held() -> HeldMemory:
            requests.write("\n")
            requests.flush()
            return HeldMemory(*map(int, replies.readline().split()))

        held()  # returns once the process has started
        try:
            yield held
        finally:
            requests.close()


def main() -> None:
    """Polls the process of the first argument until stdin ends."""
    pid = int(sys.argv[1])
    peak = 0
    while True:
        now = tree_bytes(pid, without=os.getpid())
        peak = max(peak, now)
        is_asked, _, _ = select.select([sys.stdin], [], [], POLLED_S)
        if not is_asked:
            continue
        if not sys.stdin.readline():
            return
        now = tree_bytes(pid, without=os.getpid())
        peak = max(peak, now)
        print(peak, now, held_bytes(pid), flush=True)


if __name__ == "__main__":
    main()
