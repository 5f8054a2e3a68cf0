"""Everything about order: streams, events, captures, graphs and calls, and what they leave unordered."""

from collections.abc import Callable
from dataclasses import dataclass

from tuner.runtime.simulated.byte_ranges import NO_BYTES, ByteRanges
from tuner.runtime.simulated.call_rules import CallRules
from tuner.runtime.simulated.captures import Capture, CapturedStep, Captures, Graph
from tuner.runtime.simulated.defects import DefectLog, HostDefect
from tuner.runtime.simulated.happens_before import Access, AccessHistory
from tuner.runtime.simulated.lazy_streams import LazyStreams, Order, Step, Work
from tuner.runtime.simulated.memory import Region
from tuner.runtime.simulated.refusal import refused


@dataclass(frozen=True, eq=False)
class Recorded:
    """What an event stands for."""

    work: Work | None = None  # None: nothing to wait for
    capture: Capture | None = None
    captured: CapturedStep | None = None  # the last of its stream in the capture; None: its beginning


class Timeline:
    """The work of one device."""

    def __init__(
        self,
        log: DefectLog,
        describe: Callable[[int], str],
        new_handle: Callable[[], int],
        order: Order,
        seed: int,
    ) -> None:
        """Takes what names the memory at an address, and what makes handles."""
        self._log = log
        self._new_handle = new_handle
        self._lanes = LazyStreams(order, seed)
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
        """Forgets a stream; its work stays."""
        if stream == 0:
            raise refused("INVALID_HANDLE", "found stream 0, allowed a stream that was created")
        self._require_stream(stream)
        self._streams.discard(stream)

    def create_event(self) -> int:
        """Returns an event that stands for nothing yet."""
        event = self._new_handle()
        self._events[event] = None
        return event

    def destroy_event(self, event: int) -> None:
        """Forgets an event; waits for it stay."""
        self._require_event(event)
        del self._events[event]

    def is_captured(self, stream: int) -> bool:
        """Tells whether work of a stream is collected instead of done."""
        self._require_stream(stream)
        return self._captures.of(stream) is not None

    def enqueue(self, stream: int, step: Step) -> None:
        """Puts a step on a stream, or into its capture."""
        self._require_stream(stream)
        capture = self._captures.of(stream)
        if capture is not None:
            capture.add(stream, step)
        else:
            self._submit(stream, step)

    def record(self, event: int, stream: int) -> None:
        """Lets an event stand for what its stream has so far."""
        self._require_event(event)
        self._require_stream(stream)
        capture = self._captures.of(stream)
        if capture is None:
            self._events[event] = Recorded(self._lanes.last(stream))
        else:
            capture.add(stream, Step("event"))  # gathers what the stream waits for
            self._events[event] = Recorded(None, capture, capture.last[stream])

    def wait(self, stream: int, event: int) -> None:
        """Puts later work of a stream behind what an event stands for now."""
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
            self._lanes.submit(stream, Step("wait"), (recorded.work,))

    def synchronize_stream(self, stream: int) -> None:
        """Runs what a stream has so far, and what that needs."""
        self._require_stream(stream)
        self._captures.require_none(stream, "a synchronization")
        self._wait_for(self._lanes.last(stream))

    def synchronize_event(self, event: int) -> None:
        """Runs what an event stands for, and what that needs."""
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
        """Tells whether everything is done and known to be by the host."""
        return not self._lanes.pending

    def synchronize(self) -> None:
        """Runs everything."""
        self._lanes.wait_for_all()
        self._history.forget_before(self._lanes.host)

    def begin_capture(self, stream: int) -> None:
        """Collects the work of a stream from here on."""
        self._require_stream(stream)
        self._captures.begin(stream)

    def end_capture(self, stream: int) -> int:
        """Returns a graph of the collected work."""
        capture = self._captures.end(stream)
        lanes = {number: self._new_handle() for number in capture.last if number != stream}
        graph = self._new_handle()
        self._graphs[graph] = Graph(tuple(capture.steps), lanes)
        return graph

    def launch_graph(self, graph: int, stream: int) -> None:
        """Puts the steps of a graph on a stream, each branch on a lane of its own."""
        self._require_stream(stream)
        self._require_graph(graph)
        found = self._graphs[graph]
        before = self._launched.get(graph)  # launches of one graph are in order, on any stream: cuGraphLaunch
        start = self._submit(stream, Step("graph"), () if before is None else (before,))
        placed: dict[CapturedStep, Work] = {}
        for captured in found.steps:
            lane = found.lanes.get(captured.stream, stream)
            after = (start, *(placed[earlier] for earlier in captured.after))
            placed[captured] = self._submit(lane, captured.step, after)
        self._launched[graph] = self._submit(stream, Step("end of the graph"), tuple(placed.values()))

    def destroy_graph(self, graph: int) -> None:
        """Forgets a graph; what was launched stays."""
        self._require_graph(graph)
        del self._graphs[graph]
        self._launched.pop(graph, None)

    def begin_call(self, stream: int | None, live: tuple[Region, ...]) -> None:
        """Starts to judge the work of a host program."""
        begin = None if stream is None else self._submit(stream, Step("begin of the call")).moment
        self._rules.begin(begin, live)

    def end_call(self, stream: int | None, live: tuple[Region, ...]) -> None:
        """Judges the work of a host program; late copies of host memory are dropped, it may be gone."""
        step = Step("end of the call")
        end = self._lanes.host_moment() if stream is None else self._lanes.submit(stream, step).moment
        self._drop_host_copies(self._rules.end(end, live))

    def abandon_call(self) -> None:
        """Drops the copies of host memory that a failed host program has left."""
        self._drop_host_copies(self._rules.abandon())

    def note(self, access: Access) -> None:
        """Notes an access that was not known before its work ran."""
        self._history.add(access)

    def note_host(self, what: str, reads: ByteRanges, writes: ByteRanges) -> None:
        """Notes an access of the host, now."""
        self._history.add(Access(what, self._lanes.host_moment(), reads, writes))

    def _drop_host_copies(self, works: tuple[Work, ...]) -> None:
        for work in works:
            if work.step.uses_host_memory and not work.is_done:
                self._lanes.drop(work)
                self._history.forget(work.moment)

    def _submit(self, lane: int, step: Step, after: tuple[Work, ...] = ()) -> Work:
        work = self._lanes.submit(lane, step, after)
        self._rules.note(work)
        if step.reads is not NO_BYTES or step.writes is not NO_BYTES:
            self._history.add(Access(step.what, work.moment, step.reads, step.writes))
        return work

    def _wait_for(self, work: Work | None) -> None:
        if work is not None:
            self._lanes.wait_for(work)
        if not self._lanes.pending:
            self._history.forget_before(self._lanes.host)

    def _require_stream(self, stream: int) -> None:
        if stream not in self._streams:
            raise refused("INVALID_HANDLE", f"found stream {stream:#x}, allowed 0 or one that exists")

    def _require_event(self, event: int) -> None:
        if event not in self._events:
            raise refused("INVALID_HANDLE", f"found event {event:#x}, allowed one that exists")

    def _require_graph(self, graph: int) -> None:
        if graph not in self._graphs:
            raise refused("INVALID_HANDLE", f"found graph {graph:#x}, allowed one that exists")
