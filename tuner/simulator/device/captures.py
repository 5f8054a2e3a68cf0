"""Stream capture: operations collected into a graph. CUDA programming guide, "CUDA Graphs"."""

from dataclasses import dataclass, field

from tuner.simulator.device.driver_errors import refused
from tuner.simulator.device.lazy_streams import StreamOperation


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
    waits: dict[int, list[CapturedOperation]] = field(
        default_factory=dict
    )  # stream -> nodes that its next operation waits for

    def add(self, stream: int, operation: StreamOperation) -> None:
        """Adds a node that depends on the stream's last node and on the nodes that the stream waits for.

        The stream must belong to the capture.
        """
        before = self.last[stream]
        self.place(stream, operation, (*self.waits.pop(stream, ()), *(() if before is None else (before,))))

    def add_graph(self, stream: int, graph: "Graph") -> None:
        """Adds the nodes of a graph that is launched on a captured stream: a child graph.

        Its first nodes depend on what ``add`` would depend on; the stream's next node depends on all of them.
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
        """Adds a node with given dependencies as the last one of a stream; returns the node."""
        captured = CapturedOperation(stream, operation, after)
        self.last[stream] = captured
        self.operations.append(captured)
        return captured

    def is_joined(self) -> bool:
        """Returns whether the origin stream, on which the capture began, waits in the end for every node."""
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
        """Returns the capture that a stream belongs to; None for a stream that is not captured."""
        return self._by_stream.get(stream)

    def begin(self, stream: int) -> None:
        """Begins a capture on a stream. Raises DeviceError for a stream that is captured already."""
        if stream in self._by_stream:
            raise refused("ILLEGAL_STATE", "the stream is captured already")
        self._by_stream[stream] = Capture(stream, last={stream: None})

    def join(self, stream: int, capture: Capture, operation: CapturedOperation | None) -> None:
        """Adds a stream to a capture; the stream's next operation waits for the node ``operation``.

        None: the stream only joins, after the begin of the capture. Raises DeviceError for a stream of
        another capture, and for a capture that has ended.
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
        """Ends the capture that began on ``stream``; returns it.

        Raises DeviceError for a stream that is not captured, for a stream that joined the capture later, and,
        with the capture ended nevertheless, where the origin stream does not wait for all work of a forked
        stream.
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
        """Ends a capture without a graph: none of its streams is captured after that."""
        self._by_stream = {number: other for number, other in self._by_stream.items() if other is not capture}

    def require_none(self, stream: int, what: str) -> None:
        """Raises DeviceError if a stream is captured, for a driver call that is not allowed during capture.

        ``what`` names the call in the message. The capture is abandoned then, as in CUDA.
        """
        capture = self._by_stream.get(stream)
        if capture is not None:
            self.abandon(capture)
            raise refused("STREAM_CAPTURE_UNSUPPORTED", f"found {what} of a captured stream, allowed none")
