"""Calls a function in a child process with a limit of time: a crash or a hang is a line of the results."""

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any


@dataclass(frozen=True)
class Stopped:
    """A call that returned nothing, and why, in one line."""

    reason: str


def in_child(function: Callable[..., Any], *arguments: Any, limit_s: float) -> Any:
    """Returns what ``function(*arguments)`` returns in a child process, else a Stopped.

    The function, the arguments and the result are pickled. ``limit_s``: seconds after which the child is
    killed.
    """
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    child = spawn.Process(target=_send, args=(sender, function, *arguments))
    child.start()
    sender.close()
    try:
        if receiver.poll(limit_s):
            found = receiver.recv()
            child.join()
            return found
        reason = f"timed out after {limit_s:g} s"
    except EOFError:
        child.join()
        reason = f"its process ended with {child.exitcode}"
    child.kill()
    child.join()
    return Stopped(reason)


def _send(sender: Connection, function: Callable[..., Any], *arguments: Any) -> None:
    sender.send(function(*arguments))
