"""The protocol between the tuner and its child processes: length-prefixed pickles over pipes.

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
    """Describes how to build an object in another process: a callable to import, and its arguments."""

    path: str  # "module:callable"
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a path that is not ``module:callable``."""
        module, colon, name = self.path.partition(":")
        if not (module and colon and name):
            raise ValueError(f"factory: found {self.path!r}, allowed 'module:callable'")

    def build(self, *first: Any) -> Any:
        """Imports the callable; returns its result for ``first``, followed by ``args`` and ``kwargs``."""
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)(*first, *self.args, **dict(self.kwargs))


@dataclass(frozen=True)
class ServiceSpec:
    """What a child serves: an object that a factory builds in the child, or a function (or ``partial``).

    A function is pickled as module and name, so the child imports the module before it is ready.
    """

    name: str  # "compile", "evaluate": for messages
    service: Factory | Callable[..., Any]
    environment: tuple[tuple[str, str | None], ...] = ()  # changes to the parent's; None: unset
    announces: bool = False  # the factory is called with ``announce`` first: announce(name) sends an Event


@dataclass(frozen=True)
class CallRequest:
    """One call of a method of the service."""

    method: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Ready:
    """The child has built its service."""


@dataclass(frozen=True)
class Reply:
    """The outcome of a call: its return value, or a Failure in place of it."""

    value: Any
    seconds: float = 0.0  # of the call, as the parent measured them, without pauses
    is_doubtful: bool = False  # the child died after other calls, one of which may be the cause


@dataclass(frozen=True)
class Event:
    """The service announces a step, such as timing, and waits for the GoAhead."""

    name: str


@dataclass(frozen=True)
class GoAhead:
    """The parent's reply to an Event: the service may continue."""


@dataclass(frozen=True)
class ServiceDefect:
    """An exception of a service that is not a CandidateError."""

    line: str  # for users
    trace: str
    is_machines: bool = False  # a full disk: not caused by the candidate


Message = ServiceSpec | CallRequest | Ready | Reply | Event | GoAhead | ServiceDefect


def encode(message: Message) -> bytes:
    """Returns a message as bytes. Raises pickle's errors for a value that cannot be pickled."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


class Inbox:
    """Collects received bytes and returns whole messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        """Appends received bytes, which may end anywhere within a message."""
        self._bytes += chunk

    def take(self) -> Message | None:
        """Returns the next whole message, or None. Raises pickle's errors for bytes that are no message."""
        if len(self._bytes) < LENGTH.size:
            return None
        end = LENGTH.size + LENGTH.unpack_from(self._bytes)[0]
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[LENGTH.size : end])
        del self._bytes[:end]
        message: Message = pickle.loads(body)  # noqa: S301 - from a child that we started
        return message
