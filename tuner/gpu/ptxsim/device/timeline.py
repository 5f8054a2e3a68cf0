"""The order of a device's work by streams, events, stream captures, graphs and calls; reports races.

Captures and graphs are those of the CUDA programming guide, "CUDA Graphs".
"""

from collections.abc import Callable, Container
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from tuner.core.device import StreamOrder
from tuner.gpu.ptxsim.device.happens_before import (
    NO_BYTES,
    AccessHistory,
    ByteRanges,
    DefectLog,
    HostDefect,
    MemoryAccess,
    refused,
)
from tuner.gpu.ptxsim.device.memory import MemoryRegion
from tuner.gpu.ptxsim.device.streams import CallRules, LazyStreams, StreamOperation, Work


@dataclass(eq=False)
class CapturedOperation:
    """A node of a CUDA graph: an operation, its stream, and the nodes that must run before it."""

    stream: int
    operation: StreamOperation
    after: tuple["CapturedOperation", ...]


@dataclass(eq=False)
class Capture:
    """A stream capture in progress: the operations submitted so far to all streams that belong to it."""

    origin: int  # the stream that the capture began on
    operations: list[CapturedOperation] = field(default_factory=list)
    last: dict[int, CapturedOperation | None] = field(default_factory=dict)  # by stream; None: none yet
    # stream -> nodes that its next operation waits for
    waits: dict[int, list[CapturedOperation]] = field(default_factory=dict)

    def add(self, stream: int, operation: StreamOperation) -> None:
        """Adds a node on a captured stream, after the stream's last node and the nodes that it waits for."""
        before = self.last[stream]
        self.place(stream, operation, (*self.waits.pop(stream, ()), *(() if before is None else (before,))))

    def add_graph(self, stream: int, graph: "Graph") -> None:
        """Adds the nodes of ``graph``, launched on the captured stream ``stream``, as a child graph.

        Its nodes run after what the stream has captured before, and before what the stream captures next.
        """
        self.add(stream, StreamOperation("graph"))
        start = self.last[stream]
        assert start is not None, "just added"
        copies: dict[CapturedOperation, CapturedOperation] = {}
        for node in graph.operations:
            after = (start, *(copies[earlier] for earlier in node.after))
            copies[node] = self.place(graph.queues.get(node.stream, stream), node.operation, after)
        self.place(stream, StreamOperation("end of the graph"), (start, *copies.values()))

    def place(
        self, stream: int, operation: StreamOperation, after: tuple[CapturedOperation, ...]
    ) -> CapturedOperation:
        captured = CapturedOperation(stream, operation, after)
        self.last[stream] = captured
        self.operations.append(captured)
        return captured

    def is_joined(self) -> bool:
        """Returns whether the origin stream waits, in the end, for every node of the capture."""
        seen: set[CapturedOperation] = set()
        end = self.last[self.origin]
        open_ = [*self.waits.get(self.origin, ()), *(() if end is None else (end,))]
        while open_:
            operation = open_.pop()
            if operation not in seen:
                seen.add(operation)
                open_.extend(operation.after)
        return seen >= set(self.operations)


@dataclass(frozen=True, eq=False)
class Graph:
    """The nodes of an ended stream capture in topological order: each after the nodes that it depends on."""

    operations: tuple[CapturedOperation, ...]
    queues: dict[int, int]  # stream -> queue of the graph; not of the origin stream


class Captures:
    """The stream captures in progress on a device, by stream."""

    def __init__(self) -> None:
        self._by_stream: dict[int, Capture] = {}

    def of(self, stream: int) -> Capture | None:
        return self._by_stream.get(stream)

    def begin(self, stream: int) -> None:
        """Begins a capture on a stream. Raises DeviceError for a stream that is captured already."""
        if stream in self._by_stream:
            raise refused("ILLEGAL_STATE", "the stream is captured already")
        self._by_stream[stream] = Capture(stream, last={stream: None})

    def join(self, stream: int, capture: Capture, operation: CapturedOperation | None) -> None:
        """Adds a stream to a capture, after a node; ``operation`` None: after the capture's begin.

        Raises DeviceError for an ended capture, or a stream of another one.
        """
        if capture not in self._by_stream.values():
            raise refused("CAPTURED_EVENT", "the event was recorded in a capture that has ended")
        mine = self._by_stream.setdefault(stream, capture)
        if mine is not capture:
            raise refused("STREAM_CAPTURE_MERGE", "the event is of another capture")
        capture.last.setdefault(stream, None)
        if operation is not None:
            capture.waits.setdefault(stream, []).append(operation)

    def end(self, stream: int) -> Capture:
        """Ends the capture that began on ``stream``, and returns it.

        Raises DeviceError if there is none, or if a forked stream is not joined.
        """
        capture = self._by_stream.get(stream)
        if capture is None:
            raise refused("ILLEGAL_STATE", "the stream is not captured")
        if capture.origin != stream:
            raise refused(
                "STREAM_CAPTURE_UNMATCHED", "a capture ends on the stream it began on, not on a forked one"
            )
        self.abandon(capture)
        if not capture.is_joined():
            raise refused("STREAM_CAPTURE_UNJOINED", "a forked stream has work that was not joined")
        return capture

    def abandon(self, capture: Capture) -> None:
        """Forgets a capture: its streams are no longer captured."""
        self._by_stream = {number: other for number, other in self._by_stream.items() if other is not capture}

    def require_none(self, stream: int, what: str) -> None:
        """If ``stream`` is captured, abandons its capture, as CUDA does, and raises DeviceError.

        ``what``: the call that is not allowed, for the message.
        """
        capture = self._by_stream.get(stream)
        if capture is not None:
            self.abandon(capture)
            raise refused("STREAM_CAPTURE_UNSUPPORTED", f"found {what} of a captured stream, allowed none")


@dataclass(frozen=True, eq=False)
class Recorded:
    """What an event recorded: a stream's last work, or, in a stream capture, its last captured operation."""

    work: Work | None = None  # None: no work to wait for
    capture: Capture | None = None
    captured: CapturedOperation | None = None  # the event's node in the capture


class Timeline:
    """The streams, events and graphs of a simulated device, by handle, and the order of their work.

    Methods raise DeviceError for unknown handles, but not begin_call and end_call. Races go to the log.
    """

    def __init__(
        self,
        log: DefectLog,
        describe: Callable[[int], str],
        new_handle: Callable[[], int],
        order: StreamOrder,
        seed: int,
    ) -> None:
        """``describe`` returns a text for an address, ``new_handle`` a new handle.

        ``order`` and ``seed``: in which order work that is ready runs, as for ``LazyStreams``.
        """
        self._log = log
        self._new_handle = new_handle
        self._queues = LazyStreams(order, seed)
        self._history = AccessHistory(log, describe)
        self._rules = CallRules(log)
        self._captures = Captures()
        self._streams = {0}
        self._events: dict[int, Recorded | None] = {}  # None: not recorded yet
        self._graphs: dict[int, Graph] = {}
        self._launched: dict[int, Work] = {}  # graph -> the end of its last launch

    def create_stream(self) -> int:
        stream = self._new_handle()
        self._streams.add(stream)
        return stream

    def destroy_stream(self, stream: int) -> None:
        if stream == 0:
            raise refused("INVALID_HANDLE", "stream 0 cannot be destroyed")
        self._require_stream(stream)
        self._streams.discard(stream)

    def create_event(self) -> int:
        event = self._new_handle()
        self._events[event] = None
        return event

    def destroy_event(self, event: int) -> None:
        _require("event", event, self._events)
        del self._events[event]

    def is_captured(self, stream: int) -> bool:
        self._require_stream(stream)
        return self._captures.of(stream) is not None

    def enqueue(self, stream: int, operation: StreamOperation) -> None:
        self._require_stream(stream)
        capture = self._captures.of(stream)
        if capture is not None:
            capture.add(stream, operation)
        else:
            self._submit(stream, operation)

    def record(self, event: int, stream: int) -> None:
        _require("event", event, self._events)
        self._require_stream(stream)
        capture = self._captures.of(stream)
        if capture is None:
            self._events[event] = Recorded(self._queues.last(stream))
        else:
            capture.add(stream, StreamOperation("event"))  # collects the nodes that the stream waits for
            self._events[event] = Recorded(None, capture, capture.last[stream])

    def wait(self, stream: int, event: int) -> None:
        """Orders later work of a stream after an event's work; an event of a capture adds the stream to it.

        An event that was never recorded is reported. Raises DeviceError for an event of another or an ended
        capture, and, on a captured stream, for one that was recorded outside of captures.
        """
        _require("event", event, self._events)
        self._require_stream(stream)
        recorded = self._events[event]
        if recorded is None:
            self._log.add(HostDefect.NEVER_RECORDED, "a stream waits for an event that was never recorded")
        elif recorded.capture is not None:
            self._captures.join(stream, recorded.capture, recorded.captured)
        elif self._captures.of(stream) is not None:
            raise refused("STREAM_CAPTURE_ISOLATION", "the event was recorded before the capture")
        elif recorded.work is not None:
            self._queues.submit(stream, StreamOperation("wait"), (recorded.work,))

    def synchronize_stream(self, stream: int) -> None:
        self._require_stream(stream)
        self._captures.require_none(stream, "a synchronization")
        self._wait_for(self._queues.last(stream))

    def synchronize_event(self, event: int) -> None:
        """Runs an event's work and what it depends on; an event that was never recorded is reported.

        Raises DeviceError for an event that was recorded in a capture.
        """
        _require("event", event, self._events)
        recorded = self._events[event]
        if recorded is None:
            self._log.add(HostDefect.NEVER_RECORDED, "the host waits for an event that was never recorded")
        elif recorded.capture is not None:
            raise refused("CAPTURED_EVENT", "the event was recorded in a capture")
        else:
            self._wait_for(recorded.work)

    @property
    def is_idle(self) -> bool:
        return not self._queues.pending

    def synchronize(self) -> None:
        self._queues.wait_for_all()
        self._history.forget_before(self._queues.host)

    def begin_capture(self, stream: int) -> None:
        self._require_stream(stream)
        self._captures.begin(stream)

    def end_capture(self, stream: int) -> int:
        capture = self._captures.end(stream)
        queues = {number: self._new_handle() for number in capture.last if number != stream}
        graph = self._new_handle()
        self._graphs[graph] = Graph(tuple(capture.operations), queues)
        return graph

    def launch_graph(self, graph: int, stream: int) -> None:
        """Submits a graph's operations after earlier and before later work of ``stream``.

        Operations of forked streams go to queues of the graph. A launch also waits for the graph's last
        launch. If the stream is captured, the operations are added to the capture instead.
        """
        self._require_stream(stream)
        _require("graph", graph, self._graphs)
        operations = self._graphs[graph].operations
        queues = self._graphs[graph].queues
        capture = self._captures.of(stream)
        if capture is not None:
            capture.add_graph(stream, self._graphs[graph])
            return
        before = self._launched.get(graph)  # launches of one graph are in order, on any stream: cuGraphLaunch
        start = self._submit(stream, StreamOperation("graph"), () if before is None else (before,))
        placed: dict[CapturedOperation, Work] = {}
        for captured in operations:
            after = (start, *(placed[earlier] for earlier in captured.after))
            placed[captured] = self._submit(queues.get(captured.stream, stream), captured.operation, after)
        end = StreamOperation("end of the graph")
        self._launched[graph] = self._submit(stream, end, tuple(placed.values()))

    def destroy_graph(self, graph: int) -> None:
        _require("graph", graph, self._graphs)
        del self._graphs[graph]
        self._launched.pop(graph, None)

    def begin_call(self, stream: int | None, live: tuple[MemoryRegion, ...]) -> None:
        if stream is None:
            begin = None
        else:
            begin = self._submit(stream, StreamOperation("begin of the call")).moment
        self._rules.begin(begin, live)

    def end_call(self, stream: int | None, live: tuple[MemoryRegion, ...]) -> None:
        """Ends the current call after the work on ``stream``; None: a synchronous call, ended by the host.

        Reports work that may run after the end, and leaks. Cancels pending copies of pageable host memory
        that may run after the end, since the caller may free this memory.
        """
        operation = StreamOperation("end of the call")
        if stream is None:
            end = self._queues.host_moment()
        else:
            end = self._queues.submit(stream, operation).moment
        self._drop_host_copies(self._rules.end(end, live))

    def abandon_call(self) -> None:
        """Ends a call that failed, without reports; cancels its pending copies of pageable host memory."""
        self._drop_host_copies(self._rules.abandon())

    def outside_of_calls(self) -> AbstractContextManager[None]:
        return self._rules.suspended()

    def note(self, access: MemoryAccess) -> None:
        self._history.add(access)

    def note_host(self, what: str, reads: ByteRanges, writes: ByteRanges) -> None:
        """Adds a memory access by the host at this time; reports its races. ``what``: a text for reports."""
        self._history.add(MemoryAccess(what, self._queues.host_moment(), reads, writes))

    def _drop_host_copies(self, works: tuple[Work, ...]) -> None:
        for work in works:
            if work.operation.uses_host_memory and not work.is_done:
                self._queues.drop(work)
                self._history.forget(work.moment)

    def _submit(self, queue: int, operation: StreamOperation, after: tuple[Work, ...] = ()) -> Work:
        work = self._queues.submit(queue, operation, after)
        self._rules.note(work)
        if operation.reads is not NO_BYTES or operation.writes is not NO_BYTES:
            self._history.add(MemoryAccess(operation.what, work.moment, operation.reads, operation.writes))
        return work

    def _wait_for(self, work: Work | None) -> None:
        if work is not None:
            self._queues.wait_for(work)
        if not self._queues.pending:
            self._history.forget_before(self._queues.host)

    def _require_stream(self, stream: int) -> None:
        if stream not in self._streams:
            raise refused("INVALID_HANDLE", f"found stream {stream:#x}, allowed 0 or one that exists")


def _require(what: str, handle: int, known: Container[int]) -> None:
    if handle not in known:
        raise refused("INVALID_HANDLE", f"found {what} {handle:#x}, allowed one that exists")
