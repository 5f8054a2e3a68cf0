"""The protocol between the tuner and its child processes: messages over pipes, and limits of a child."""

import importlib
import math
import pickle
import struct
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

from tuner.core.interfaces import Effort
from tuner.core.problem import Problem

SLOWEST_FLOP_PER_S = 1e9  # a plain scalar loop reaches this; a slower kernel counts as a hang
REFERENCE_FLOP_PER_S = 5e9  # float64 numpy on one core, on the slowest machine tried
CALLS = 20  # of the kernel: 2 to verify, warm-up, first samples, and a margin for a slow candidate
LIBRARY_START_S = 30.0  # of a baseline library: torch is imported, inputs are drawn
BUSY = 3  # factor by which a processor shared with two other programs is slower
SAMPLE_S = 1e-3  # least duration of a sample, as in ``tuner.runtime.timing``
# Elements of A, B and twice C per second that are drawn, filled and compared around each sample: half of
# what one core reached with 64x64x64, the slowest shape tried, since a short sample has a second comparison.
UNTIMED_ELEMENTS_PER_S = 1e7
GPU_CALLS = 60  # of a slow kernel, not early-stopped: 20 warm samples, 20 cold ones, and calls around them
CALL = "__call__"  # the method of a service that is a function
LENGTH = struct.Struct("<Q")  # bytes of the pickle that follows
STEP_BYTES = 256  # of the memory in which a child names its step; a longer name is cut


@dataclass(frozen=True)
class Limits:
    """Limits of the child processes for one problem: seconds to compile and to evaluate, bytes of memory."""

    compile_timeout_s: float = 30.0
    evaluation_timeout_s: float = 10.0  # for loading and drawing inputs; calls and the reference are added
    memory_bytes: int = 8 << 30  # resident
    slowest_flop_per_s: float = SLOWEST_FLOP_PER_S
    calls: int = CALLS  # that a kernel of ``slowest_flop_per_s`` has time for
    libraries: int = 1  # the most baseline libraries that a final re-measurement starts and times

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0:
            raise ValueError(f"limits: found {self}, allowed positive numbers")

    def evaluation_limit_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns the time limit, in seconds, to load, verify and time an artifact.

        ``call_s``: expected seconds per call; None: those of the slowest allowed kernel.
        """
        reference_s = problem.flop / REFERENCE_FLOP_PER_S
        return self.evaluation_timeout_s + reference_s + self.timing_s(problem, effort, call_s)

    def remeasurement_limit_s(
        self, problem: Problem, effort: Effort, call_s: float | None, participants: int
    ) -> float:
        """Returns the time limit, in seconds, of a final re-measurement of ``participants`` programs.

        ``call_s``: seconds per call of the slowest; None: those of the slowest allowed kernel. Includes the
        time to start further baseline libraries.
        """
        reference_s = problem.flop / REFERENCE_FLOP_PER_S
        m, n, k = problem.sizes
        elements = problem.batch * (m * k + k * n + 2 * m * n)  # of A, B and twice C
        sample_s = 2 * max(self._call_s(problem, call_s), SAMPLE_S)  # an untimed call precedes each sample
        samples = min(effort.max_samples, max(effort.min_samples, math.ceil(effort.budget_s / sample_s)))
        interleaved_s = BUSY * samples * (sample_s + elements / UNTIMED_ELEMENTS_PER_S)
        each_s = max(self.timing_s(problem, effort, call_s), interleaved_s)
        others = self.libraries - 1
        start_s = self.evaluation_timeout_s + reference_s
        return start_s + participants * each_s + others * (LIBRARY_START_S + reference_s + each_s)

    def timing_s(self, problem: Problem, effort: Effort, call_s: float | None) -> float:
        """Returns the time limit, in seconds, for all calls of one kernel.

        ``call_s``: expected seconds per call; None: those of the slowest allowed kernel.
        """
        return self.calls * self._call_s(problem, call_s) + 4 * effort.budget_s

    def _call_s(self, problem: Problem, call_s: float | None) -> float:
        if call_s is None:
            return problem.flop / self.slowest_flop_per_s
        return call_s


# The protocol between the tuner and its child processes: length-prefixed pickles over pipes.
#
# parent: ServiceSpec, then CallRequest ..., with a GoAhead for every Event
# child:  Ready, then per CallRequest any number of Events and one Reply; ServiceDefect in place of either


@dataclass(frozen=True)
class Factory:
    """A recipe to build an object in another process: a callable as "module:callable", and its arguments."""

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
    """A message from a child process: the return value of a call, or a Failure in place of it."""

    value: Any
    seconds: float = 0.0  # of the call, as the parent measured them, without pauses
    is_doubtful: bool = False  # the child died after other calls, one of which may be the cause


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
        body = bytes(self._bytes[LENGTH.size : end])
        del self._bytes[:end]
        message: Message = pickle.loads(body)  # noqa: S301 - from a child that we started
        return message
