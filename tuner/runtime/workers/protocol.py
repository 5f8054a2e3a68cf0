"""The protocol between the tuner and its child processes: length-prefixed pickles over pipes.

parent: ServiceSpec, then CallRequest ..., with a GoAhead for every Event
child:  Ready, then per CallRequest any number of Events and one Reply; ServiceDefect in place of either
"""

import importlib
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuner.core.records import Verdict

CALL = "__call__"  # the method of a service that is a function
LENGTH = struct.Struct("<Q")  # bytes of the pickle that follows
STEP_BYTES = 256  # of the memory in which a child names its step; a longer name is cut


@dataclass(frozen=True)
class Factory:
    """A recipe to build an object in another process: a callable as "module:callable", and its arguments.

    Raises ValueError for a path of another form.
    """

    path: str  # "module:callable"
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        module, colon, name = self.path.partition(":")
        if not (module and colon and name):
            raise ValueError(f"factory: found {self.path!r}, allowed 'module:callable'")

    def build(self, *first: Any) -> Any:
        """Imports the callable and returns its result for ``first``, followed by the recipe's arguments."""
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)(*first, *self.args, **dict(self.kwargs))


@dataclass(frozen=True)
class ServiceSpec:
    """The service of a child process: an object that a factory builds there, or a pickled function."""

    name: str  # "compile", "evaluate": for messages
    service: Factory | Callable[..., Any]
    environment: tuple[tuple[str, str | None], ...] = ()  # changes to the parent's; None: unset
    announces: bool = False  # the factory is called with ``announce`` first: announce(name) sends an Event


@dataclass(frozen=True)
class CallRequest:
    """A message to a child process: one call of a method of its service, with the arguments."""

    method: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Ready:
    """A message from a child process: it has built its service and accepts calls."""


@dataclass(frozen=True)
class Reply:
    """A message from a child process: the return value of a call, or a Failure in place of it.

    A service may return the message itself: of an evaluation it has the verdict and the stages as well.
    """

    value: Any
    seconds: float = 0.0  # of the call, as the parent measured them, without pauses
    is_doubtful: bool = False  # the child died after other calls, one of which may be the cause
    verdict: "Verdict | None" = None  # in addition to a Measurement
    stage_s: tuple[tuple[str, float], ...] = ()  # (stage, seconds) of an evaluation, in order

    @classmethod
    def of(cls, value: object) -> "Reply":
        """Returns the message of what a call returned: ``value`` itself if it is a Reply."""
        return value if isinstance(value, Reply) else cls(value)


@dataclass(frozen=True)
class Event:
    """A message from a child process: a call has reached a step, such as timing, and waits for a GoAhead."""

    name: str


@dataclass(frozen=True)
class GoAhead:
    """A message to a child process in reply to an Event: the call may continue."""


@dataclass(frozen=True)
class ServiceDefect:
    """A message from a child process: an exception other than CandidateError, in a call or while starting."""

    line: str  # for users
    trace: str
    is_machines: bool = False  # the machine failed, as by a full disk: not caused by the candidate


Message = ServiceSpec | CallRequest | Ready | Reply | Event | GoAhead | ServiceDefect


def step_bytes(name: str) -> bytes:
    """Returns a step's name as a child writes it for its parent: STEP_BYTES bytes of UTF-8, padded by 0."""
    return name.encode()[:STEP_BYTES].ljust(STEP_BYTES, b"\0")


def encode(message: Message) -> bytes:
    """Returns the bytes of a message for the pipe: its length in eight bytes, then its pickle.

    Raises the errors of pickle.
    """
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(body)) + body


class Inbox:
    """A buffer that takes received bytes in any pieces and returns whole messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, chunk: bytes) -> None:
        """Appends received bytes; a piece may begin and end anywhere within a message."""
        self._bytes += chunk

    def take(self) -> Message | None:
        """Removes and returns the earliest whole message; None if there is none.

        Raises the errors of pickle for a damaged message.
        """
        if len(self._bytes) < LENGTH.size:
            return None
        end = LENGTH.size + LENGTH.unpack_from(self._bytes)[0]
        if len(self._bytes) < end:
            return None
        with memoryview(self._bytes) as received:
            body = bytes(received[LENGTH.size : end])
        del self._bytes[:end]
        message: Message = pickle.loads(body)  # noqa: S301 - from a child that we started
        return message
