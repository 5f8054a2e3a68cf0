"""What the tuner and its child processes say to each other: length-prefixed pickles over pipes.

parent: ServiceSpec, then CallRequest ..., with a GoAhead for every Event
child:  Ready, then per CallRequest any number of Events and one Reply; ServiceDefect in place of either
"""

import importlib
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CALL = "__call__"  # the method of a service that is a function
LENGTH = struct.Struct("<Q")  # bytes of the pickle that follows


@dataclass(frozen=True)
class Factory:
    """How to build an object in another process: where to import its class from, and the arguments."""

    path: str  # "module:callable"
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a path that is not ``module:callable``."""
        module, colon, name = self.path.partition(":")
        if not (module and colon and name):
            raise ValueError(f"factory: found {self.path!r}, allowed 'module:callable'")

    def build(self, *first: Any) -> Any:
        """Imports the callable and calls it with ``first`` before its own arguments."""
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)(*first, *self.args, **dict(self.kwargs))


@dataclass(frozen=True)
class ServiceSpec:
    """What a child serves: what a factory builds there, or a function, maybe with its first arguments.

    A function crosses as its module and name, so the child imports the module before it is ready.
    """

    name: str  # "compile", "evaluate": for messages to people
    service: Factory | Callable[..., Any]
    environment: tuple[tuple[str, str | None], ...] = ()  # over the parent's; None takes a variable away
    announces: bool = False  # the factory is called with ``announce`` first: announce(name) sends an Event


@dataclass(frozen=True)
class CallRequest:
    """One call of a method of the service."""

    method: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Ready:
    """The service is built."""


@dataclass(frozen=True)
class Reply:
    """The outcome of a call: what it returned, or the Failure in its place."""

    value: Any
    seconds: float = 0.0  # of the call, as the parent saw it; pauses left out
    is_doubtful: bool = False  # the child died after it had served other calls: one of them may be to blame


@dataclass(frozen=True)
class Event:
    """The service announces what it is about to do and waits for the GoAhead."""

    name: str


@dataclass(frozen=True)
class GoAhead:
    """The parent has heard an Event."""


@dataclass(frozen=True)
class ServiceDefect:
    """An exception that is no CandidateError."""

    line: str  # for people
    trace: str
    is_machines: bool = False  # a full disk: no candidate's doing


Message = ServiceSpec | CallRequest | Ready | Reply | Event | GoAhead | ServiceDefect


def encode(message: Message) -> bytes:
    """Returns the bytes of a message. Raises what pickle raises for a value that cannot cross."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


class Inbox:
    """Collects bytes as they come and gives whole messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        """Takes in bytes, cut anywhere."""
        self._bytes += chunk

    def take(self) -> Message | None:
        """Returns the next whole message, or None. Raises what pickle raises for bytes that are none."""
        if len(self._bytes) < LENGTH.size:
            return None
        end = LENGTH.size + LENGTH.unpack_from(self._bytes)[0]
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[LENGTH.size : end])
        del self._bytes[:end]
        message: Message = pickle.loads(body)  # noqa: S301 - from a child that we started
        return message
