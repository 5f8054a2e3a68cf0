"""Calls a function in a child process with limits of time and memory; a crash or a hang is a result."""

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from benchmarks.process_memory import tree_bytes

WATCHED_S = 0.1  # between two looks at the memory of a child that has a limit


@dataclass(frozen=True)
class Stopped:
    """A call that returned nothing, and why, in one line."""

    reason: str


def in_child(
    function: Callable[..., Any], *arguments: Any, limit_s: float, limit_bytes: int | None = None
) -> Any:
    """Returns what ``function(*arguments)`` returns in a child process, else a Stopped.

    The function, the arguments and the result are pickled. ``limit_s``: seconds after which the child is
    killed. ``limit_bytes``: memory of the child and its own children together, above which it is killed.
    """
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    child = spawn.Process(target=_send, args=(sender, function, *arguments))
    child.start()
    sender.close()
    try:
        reason = _why_stopped(receiver, child, limit_s, limit_bytes)
        if not reason:
            found = receiver.recv()
            child.join()
            return found
    except EOFError:
        child.join()
        reason = f"its process ended with {child.exitcode}"
    child.kill()
    child.join()
    return Stopped(reason)


def _why_stopped(receiver: Connection, child: SpawnProcess, limit_s: float, limit_bytes: int | None) -> str:
    """Waits for a result; returns "" once it is there, else which limit the child has exceeded."""
    assert child.pid is not None
    end_s = time.monotonic() + limit_s
    while True:
        left_s = end_s - time.monotonic()
        waited_s = left_s if limit_bytes is None else min(WATCHED_S, left_s)
        if receiver.poll(max(0.0, waited_s)):
            return ""
        if left_s <= waited_s:
            return f"timed out after {limit_s:g} s"
        if limit_bytes is not None and tree_bytes(child.pid) > limit_bytes:
            return f"exceeded {limit_bytes >> 20} MiB of memory"


def _send(sender: Connection, function: Callable[..., Any], *arguments: Any) -> None:
    sender.send(function(*arguments))
