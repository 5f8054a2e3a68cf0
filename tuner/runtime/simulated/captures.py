"""Stream capture: work that is collected into graphs instead of being done."""

from dataclasses import dataclass, field

from tuner.runtime.simulated.lazy_streams import Step
from tuner.runtime.simulated.refusal import refused


@dataclass(eq=False)
class CapturedStep:
    """A step of a graph, with what it waits for inside of the graph."""

    stream: int
    step: Step
    after: tuple["CapturedStep", ...]


@dataclass(eq=False)
class Capture:
    """What is collected from one ``begin_capture`` on."""

    origin: int  # the stream that it began on
    steps: list[CapturedStep] = field(default_factory=list)
    last: dict[int, CapturedStep | None] = field(default_factory=dict)  # by stream; None: nothing yet
    waits: dict[int, list[CapturedStep]] = field(default_factory=dict)  # of the next step of each stream

    def add(self, stream: int, step: Step) -> None:
        """Collects a step behind what its stream has and waits for."""
        before = self.last[stream]
        after = (*self.waits.pop(stream, ()), *(() if before is None else (before,)))
        captured = CapturedStep(stream, step, after)
        self.last[stream] = captured
        self.steps.append(captured)

    def is_joined(self) -> bool:
        """Tells whether everything is ordered before the end of the origin."""
        seen: set[CapturedStep] = set()
        end = self.last[self.origin]
        open_ = [*self.waits.get(self.origin, ()), *(() if end is None else (end,))]
        while open_:
            step = open_.pop()
            if step not in seen:
                seen.add(step)
                open_.extend(step.after)
        return seen >= set(self.steps)


@dataclass(frozen=True, eq=False)
class Graph:
    """Collected steps, in an order that respects them."""

    steps: tuple[CapturedStep, ...]
    lanes: dict[int, int]  # of each stream but the one it began on, a lane of the graph's own


class Captures:
    """The captures that are going on."""

    def __init__(self) -> None:
        self._by_stream: dict[int, Capture] = {}

    def of(self, stream: int) -> Capture | None:
        """Returns the capture a stream belongs to."""
        return self._by_stream.get(stream)

    def begin(self, stream: int) -> None:
        """Starts to collect. Raises DeviceError where that goes on already."""
        if stream in self._by_stream:
            raise refused("ILLEGAL_STATE", "found a stream that is captured already, allowed another one")
        self._by_stream[stream] = Capture(stream, last={stream: None})

    def join(self, stream: int, capture: Capture, step: CapturedStep | None) -> None:
        """Lets a stream wait for a captured step, which makes it a part of the capture."""
        mine = self._by_stream.setdefault(stream, capture)
        if mine is not capture:
            raise refused(
                "STREAM_CAPTURE_MERGE", "found an event of another capture, allowed one of the same"
            )
        capture.last.setdefault(stream, None)
        if step is not None:
            capture.waits.setdefault(stream, []).append(step)

    def end(self, stream: int) -> Capture:
        """Stops to collect. Raises DeviceError where a stream was forked and not joined."""
        capture = self._by_stream.get(stream)
        if capture is None:
            raise refused("ILLEGAL_STATE", "found a stream that is not captured, allowed one that is")
        if capture.origin != stream:
            raise refused("STREAM_CAPTURE_UNMATCHED", "found a forked stream, allowed the one it began on")
        self.abandon(capture)
        if not capture.is_joined():
            raise refused(
                "STREAM_CAPTURE_UNJOINED", "found a forked stream with work that was not joined, allowed none"
            )
        return capture

    def abandon(self, capture: Capture) -> None:
        """Lets go of the streams of a capture."""
        self._by_stream = {number: other for number, other in self._by_stream.items() if other is not capture}

    def require_none(self, stream: int, what: str) -> None:
        """Raises DeviceError for a call that a captured stream does not take; the capture is over then."""
        capture = self._by_stream.get(stream)
        if capture is not None:
            self.abandon(capture)
            raise refused("STREAM_CAPTURE_UNSUPPORTED", f"found {what} of a captured stream, allowed none")
