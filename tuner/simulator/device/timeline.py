"""Ordering of work by streams, events, captures, graphs and calls; reports what they leave unordered."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tuner.simulator.device.byte_ranges import NO_BYTES, ByteRanges
from tuner.simulator.device.call_rules import CallRules
from tuner.simulator.device.captures import Capture, CapturedOperation, Captures, Graph
from tuner.simulator.device.defects import DefectLog, HostDefect
from tuner.simulator.device.driver_errors import refused
from tuner.simulator.device.happens_before import AccessHistory, MemoryAccess
from tuner.simulator.device.lazy_streams import LazyStreams, Order, StreamOperation, Work
from tuner.simulator.device.memory import MemoryRegion


@dataclass(frozen=True, eq=False)
class Recorded:
    """The work that a recorded event stands for."""

    work: Work | None = None  # None: nothing to wait for
    capture: Capture | None = None
    captured: CapturedOperation | None = None  # the last of its stream in the capture; None: its beginning


class Timeline:
    """Streams, events and graphs of one device, by their handles."""

    def __init__(
        self,
        log: DefectLog,
        describe: Callable[[int], str],
        new_handle: Callable[[], int],
        order: Order,
        seed: int,
    ) -> None:
        """Takes the functions that name the memory at an address and that make handles."""
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
        """Returns a new stream."""
        stream = self._new_handle()
        self._streams.add(stream)
        return stream

    def destroy_stream(self, stream: int) -> None:
        """Destroys a stream; its submitted work stays."""
        if stream == 0:
            raise refused("INVALID_HANDLE", "found stream 0, allowed a stream that was created")
        self._require_stream(stream)
        self._streams.discard(stream)

    def create_event(self) -> int:
        """Returns an event that is not recorded yet."""
        event = self._new_handle()
        self._events[event] = None
        return event

    def destroy_event(self, event: int) -> None:
        """Destroys an event; streams that wait for it still do."""
        self._require_event(event)
        del self._events[event]

    def is_captured(self, stream: int) -> bool:
        """Tells whether the work of a stream goes into a capture."""
        self._require_stream(stream)
        return self._captures.of(stream) is not None

    def enqueue(self, stream: int, operation: StreamOperation) -> None:
        """Submits an operation to a stream, or adds it to the stream's capture."""
        self._require_stream(stream)
        capture = self._captures.of(stream)
        if capture is not None:
            capture.add(stream, operation)
        else:
            self._submit(stream, operation)

    def record(self, event: int, stream: int) -> None:
        """Records an event: it stands for all work submitted to the stream so far."""
        self._require_event(event)
        self._require_stream(stream)
        capture = self._captures.of(stream)
        if capture is None:
            self._events[event] = Recorded(self._queues.last(stream))
        else:
            capture.add(stream, StreamOperation("event"))  # gathers what the stream waits for
            self._events[event] = Recorded(None, capture, capture.last[stream])

    def wait(self, stream: int, event: int) -> None:
        """Orders later work of a stream after the work that an event stands for now."""
        self._require_event(event)
        self._require_stream(stream)
        recorded = self._events[event]
        if recorded is None:
            self._log.add(HostDefect.NEVER_RECORDED, "a stream waits for an event that was never recorded")
        elif recorded.capture is not None:
            self._captures.join(stream, recorded.capture, recorded.captured)
        elif self._captures.of(stream) is not None:
            raise refused("STREAM_CAPTURE_ISOLATION", "found an event from before the capture, allowed none")
        elif recorded.work is not None:
            self._queues.submit(stream, StreamOperation("wait"), (recorded.work,))

    def synchronize_stream(self, stream: int) -> None:
        """Runs the work of a stream and all that it depends on."""
        self._require_stream(stream)
        self._captures.require_none(stream, "a synchronization")
        self._wait_for(self._queues.last(stream))

    def synchronize_event(self, event: int) -> None:
        """Runs the work of an event and all that it depends on."""
        self._require_event(event)
        recorded = self._events[event]
        if recorded is None:
            self._log.add(HostDefect.NEVER_RECORDED, "the host waits for an event that was never recorded")
        elif recorded.capture is not None:
            raise refused("CAPTURED_EVENT", "found an event of a capture, allowed one recorded outside")
        else:
            self._wait_for(recorded.work)

    @property
    def is_idle(self) -> bool:
        """Tells whether no submitted work is left to run."""
        return not self._queues.pending

    def synchronize(self) -> None:
        """Runs all submitted work."""
        self._queues.wait_for_all()
        self._history.forget_before(self._queues.host)

    def begin_capture(self, stream: int) -> None:
        """Begins a capture on a stream."""
        self._require_stream(stream)
        self._captures.begin(stream)

    def end_capture(self, stream: int) -> int:
        """Ends a capture; returns its graph."""
        capture = self._captures.end(stream)
        queues = {number: self._new_handle() for number in capture.last if number != stream}
        graph = self._new_handle()
        self._graphs[graph] = Graph(tuple(capture.operations), queues)
        return graph

    def launch_graph(self, graph: int, stream: int) -> None:
        """Submits the operations of a graph to a stream, those of forked streams to queues of the graph."""
        self._require_stream(stream)
        self._require_graph(graph)
        found = self._graphs[graph]
        before = self._launched.get(graph)  # launches of one graph are in order, on any stream: cuGraphLaunch
        start = self._submit(stream, StreamOperation("graph"), () if before is None else (before,))
        placed: dict[CapturedOperation, Work] = {}
        for captured in found.operations:
            queue = found.queues.get(captured.stream, stream)
            after = (start, *(placed[earlier] for earlier in captured.after))
            placed[captured] = self._submit(queue, captured.operation, after)
        self._launched[graph] = self._submit(
            stream, StreamOperation("end of the graph"), tuple(placed.values())
        )

    def destroy_graph(self, graph: int) -> None:
        """Destroys a graph; its launches stay."""
        self._require_graph(graph)
        del self._graphs[graph]
        self._launched.pop(graph, None)

    def begin_call(self, stream: int | None, live: tuple[MemoryRegion, ...]) -> None:
        """Begins a call of a host program; None: a synchronous one, which the host orders."""
        begin = None if stream is None else self._submit(stream, StreamOperation("begin of the call")).moment
        self._rules.begin(begin, live)

    def end_call(self, stream: int | None, live: tuple[MemoryRegion, ...]) -> None:
        """Ends the call, and cancels its late copies of host memory, which the caller may free now."""
        operation = StreamOperation("end of the call")
        end = self._queues.host_moment() if stream is None else self._queues.submit(stream, operation).moment
        self._drop_host_copies(self._rules.end(end, live))

    def abandon_call(self) -> None:
        """Ends a call that failed, and cancels its copies of host memory."""
        self._drop_host_copies(self._rules.abandon())

    def outside_of_calls(self) -> AbstractContextManager[None]:
        """Leaves work in it out of the call that runs."""
        return self._rules.suspended()

    def note(self, access: MemoryAccess) -> None:
        """Adds an access that became known when its work ran."""
        self._history.add(access)

    def note_host(self, what: str, reads: ByteRanges, writes: ByteRanges) -> None:
        """Adds an access of the host at its next moment."""
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

    def _require_event(self, event: int) -> None:
        if event not in self._events:
            raise refused("INVALID_HANDLE", f"found event {event:#x}, allowed one that exists")

    def _require_graph(self, graph: int) -> None:
        if graph not in self._graphs:
            raise refused("INVALID_HANDLE", f"found graph {graph:#x}, allowed one that exists")
