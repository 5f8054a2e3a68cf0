"""Capture as CUDA has it: what is collected, what is refused, and what a graph does when it is launched."""

from collections.abc import Callable

import numpy as np
import pytest

from tuner.core.gpu import DeviceError
from tuner.simulator.device.happens_before import HostDefect
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.device.streams import ORDERS, Order


def kinds_of(device: SimulatedDevice) -> list[HostDefect]:
    return [report.kind for report in device.reports]


class Capturing:
    """A device that captures its stream ``origin``; ``other`` is a second stream."""

    def __init__(self, order: Order = "fifo") -> None:
        self.device = SimulatedDevice(order=order)
        self.origin, self.other = self.device.create_stream(), self.device.create_stream()
        self.before = self.device.create_event()
        self.device.record_event(self.before, self.other)
        self.address = self.device.allocate(8, 0)
        self.device.synchronize_stream(0)
        self.device.begin_capture(self.origin)

    def link(self, later: int, earlier: int) -> None:
        event = self.device.create_event()
        self.device.record_event(event, earlier)
        self.device.wait_event(later, event)
        self.device.destroy_event(event)

    def fill(self, value: int, first: int, stream: int) -> None:
        self.device.fill(self.address + first, value, 1, 4, stream)

    def content(self) -> list[int]:
        found = np.zeros(8, np.uint8)
        stream = self.device.create_stream()
        self.device.copy(found.ctypes.data, self.address, 8, stream)
        self.device.synchronize_stream(stream)
        return [int(value) for value in found]


@pytest.mark.parametrize("order", ORDERS)
def test_a_graph_runs_its_branches_in_the_order_of_its_events(order: Order) -> None:
    here = Capturing(order)
    here.fill(1, 0, here.origin)
    here.link(here.other, here.origin)
    here.fill(2, 0, here.other)
    here.fill(3, 4, here.origin)
    here.link(here.origin, here.other)
    here.fill(4, 4, here.origin)
    graph = here.device.end_capture(here.origin)
    assert here.content() == [0xFF] * 8
    for stream in (here.origin, here.other):  # streams are free again, and a graph waits for its last launch
        here.device.launch_graph(graph, stream)
    here.device.synchronize_stream(here.other)
    assert here.content() == [2] * 4 + [4] * 4
    assert set(kinds_of(here.device)) == {HostDefect.UNWRITTEN}  # of the look before the launch


def test_branches_that_nothing_orders_are_a_race_of_each_launch() -> None:
    here = Capturing()
    here.link(here.other, here.origin)
    here.fill(1, 0, here.origin)
    here.fill(2, 0, here.other)
    here.link(here.origin, here.other)
    graph = here.device.end_capture(here.origin)
    assert here.device.reports == ()
    here.device.launch_graph(graph, here.origin)
    assert kinds_of(here.device) == [HostDefect.RACE]


def test_memory_of_a_graph_is_new_in_each_launch() -> None:
    here = Capturing()
    found = np.zeros(4, np.uint8)
    scratch = here.device.allocate(4, here.origin)
    here.device.copy(found.ctypes.data, scratch, 4, here.origin)
    here.device.fill(scratch, 7, 1, 4, here.origin)
    here.device.free(scratch, here.origin)
    graph = here.device.end_capture(here.origin)
    for _ in range(2):
        found[:] = 0
        here.device.launch_graph(graph, here.origin)
        here.device.synchronize_stream(here.origin)
        assert found.tolist() == [0xFF] * 4
    assert set(kinds_of(here.device)) == {HostDefect.UNWRITTEN}


def fork_alone(here: Capturing) -> None:
    here.link(here.other, here.origin)
    here.fill(1, 0, here.other)
    here.device.end_capture(here.origin)


def end_of_a_fork(here: Capturing) -> None:
    here.link(here.other, here.origin)
    here.device.end_capture(here.other)


def two_captures(here: Capturing) -> None:
    here.device.begin_capture(here.other)
    here.link(here.other, here.origin)


def wait_of_the_host(here: Capturing) -> None:
    event = here.device.create_event()
    here.device.record_event(event, here.origin)
    here.device.synchronize_event(event)


WRONG: dict[str, Callable[[Capturing], object]] = {
    "STREAM_CAPTURE_UNJOINED: a forked stream has work that was not joined": fork_alone,
    "STREAM_CAPTURE_UNMATCHED: a capture ends on the stream it began on, not on a forked one": end_of_a_fork,
    "STREAM_CAPTURE_MERGE: the event is of another capture": two_captures,
    "CAPTURED_EVENT: the event was recorded in a capture": wait_of_the_host,
    "ILLEGAL_STATE: the stream is captured already": lambda here: here.device.begin_capture(here.origin),
    "ILLEGAL_STATE: the stream is not captured": lambda here: here.device.end_capture(here.other),
    "STREAM_CAPTURE_ISOLATION: the event was recorded before the capture": (
        lambda here: here.device.wait_event(here.origin, here.before)
    ),
    "STREAM_CAPTURE_UNSUPPORTED: found a synchronization of a captured stream": (
        lambda here: here.device.synchronize_stream(here.origin)
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_captured_is_refused_and_lets_its_streams_go(message: str) -> None:
    here = Capturing()
    with pytest.raises(DeviceError, match=f"CUDA_ERROR_{message}"):
        WRONG[message](here)
    if "UNSUPPORTED" in message:
        here.fill(5, 0, here.origin)
        here.fill(6, 4, here.origin)
        here.device.synchronize_stream(here.origin)
        assert here.content() == [5] * 4 + [6] * 4


@pytest.mark.parametrize("order", ORDERS)
def test_a_graph_that_is_launched_on_a_captured_stream_is_part_of_the_new_graph(order: Order) -> None:
    here = Capturing(order)
    here.fill(1, 0, here.origin)
    here.link(here.other, here.origin)
    here.fill(2, 0, here.other)
    here.link(here.origin, here.other)
    inner = here.device.end_capture(here.origin)
    here.device.begin_capture(here.other)
    here.fill(7, 0, here.other)
    here.device.launch_graph(inner, here.other)
    here.fill(3, 4, here.other)
    outer = here.device.end_capture(here.other)
    assert here.content() == [0xFF] * 8  # nothing has run yet
    here.device.launch_graph(outer, here.origin)
    here.device.synchronize_stream(here.origin)
    assert here.content() == [2] * 4 + [3] * 4
    assert kinds_of(here.device) == [HostDefect.UNWRITTEN]  # read before the launch, on purpose


def test_an_event_of_a_capture_that_has_ended_cannot_be_waited_for() -> None:
    here = Capturing()
    event = here.device.create_event()
    here.fill(1, 0, here.origin)
    here.device.record_event(event, here.origin)
    here.device.end_capture(here.origin)
    with pytest.raises(DeviceError, match="a capture that has ended") as failure:
        here.device.wait_event(here.other, event)
    assert failure.value.error_name == "CUDA_ERROR_CAPTURED_EVENT"
    here.device.synchronize_stream(here.other)  # which belongs to no capture
