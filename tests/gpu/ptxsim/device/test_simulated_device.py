"""The simulated device: it obeys its port, finds each defect of small programs in any order, and captures."""

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.gpu.ptxsim.device.test_kernels import SCALE, Parameters
from tests.runtime.calling_every import call_everything
from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import STREAM_ORDERS, Extent, KernelLaunch, StreamOrder
from tuner.core.errors import DeviceError, UsageError
from tuner.gpu.ptxsim.device.happens_before import HostDefect
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice

KERNEL = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n, .param .u64 b) { ret; }
"""
BYTES = 256
Step = Callable[[], object]
SOURCE = np.arange(64, dtype=np.float32)
INTERLEAVED = TensorMapLayout((8,), (), (8,), 7, interleave=1)
IN_CLUSTERS = KernelLaunch(1, Extent(2), Extent(1), cluster=Extent(2))


def kinds_of(device: SimulatedDevice) -> list[HostDefect]:
    return [report.kind for report in device.reports]


class Program:
    """y = 3 x on two streams; a step may be left out or changed."""

    def __init__(self, order: StreamOrder, seed: int = 0) -> None:
        self.device = SimulatedDevice(order=order, seed=seed)
        self.result = np.zeros(64, np.float32)
        self.source = SOURCE.copy()
        self.result_at, self.source_at = self.result.ctypes.data, self.source.ctypes.data
        self.first, self.second = self.device.create_stream(), self.device.create_stream()
        self.function = self.device.function(self.device.load_module(SCALE), "scale")
        self.made: dict[str, int] = {}

    def run(self, without: str = "", instead: dict[str, Step] | None = None) -> set[HostDefect]:
        """Runs all steps but one; returns the kinds that were reported."""
        steps = self.steps() | (instead or {})
        if without:
            del steps[without]
        for step in steps.values():
            step()
        return set(kinds_of(self.device))

    def steps(self) -> dict[str, Step]:
        device, watch = self.device, self.watch
        fork, ready, join = (device.create_event() for _ in range(3))
        return {
            "begin": lambda: watch.begin_call(self.first),
            "record fork": lambda: device.record_event(fork, self.first),
            "fork": lambda: device.wait_event(self.second, fork),
            "allocate x": lambda: self.allocate("x", self.first),
            "copy in": lambda: self.copy_in(BYTES),
            "record ready": lambda: device.record_event(ready, self.first),
            "allocate y": lambda: self.allocate("y", self.second),
            "wait ready": lambda: device.wait_event(self.second, ready),
            "launch": self.start,
            "copy out": self.copy_back,
            "free y": lambda: self.free("y", self.second),
            "record join": lambda: device.record_event(join, self.second),
            "join": lambda: device.wait_event(self.first, join),
            "free x": lambda: self.free("x", self.first),
            "end": lambda: watch.end_call(self.first),
            "synchronize": lambda: device.synchronize_stream(self.first),
            "read": lambda: watch.host_reads(self.result_at, BYTES),
        }

    @property
    def watch(self) -> Any:
        return self.device.watch

    def allocate(self, name: str, stream: int) -> None:
        self.made[name] = self.device.allocate(BYTES, stream)

    def copy_back(self) -> None:
        self.device.copy(self.result_at, self.made["y"], BYTES, self.second)

    def copy_in(self, size_bytes: int, shift: int = 0) -> None:
        self.device.copy(self.made["x"] + shift, self.source_at, size_bytes, self.first)

    def free(self, name: str, stream: int) -> None:
        self.device.free(self.made[name], stream)

    def start(self) -> None:
        self.launch(self.made["x"], self.made["y"], self.second)

    def launch(self, x: int, y: int, stream: int) -> None:
        given = Parameters(ctypes.c_uint64(x), ctypes.c_float(3), ctypes.c_uint64(y))
        self.device.launch(given.launch(self.function), stream)


@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_nothing_is_done_before_it_is_needed_and_nothing_is_reported(order: StreamOrder) -> None:
    program, not_copied = Program(order), Program(order)
    program.run(without="synchronize", instead={"read": lambda: None})
    assert not program.result.any()
    program.device.synchronize_stream(program.first)
    np.testing.assert_array_equal(program.result, 3 * SOURCE)
    assert program.device.reports == ()
    not_copied.run(without="copy out")
    assert not not_copied.result.any()


FREED_TWICE, FREED = HostDefect.DOUBLE_FREE, HostDefect.USE_AFTER_FREE
NEVER, LEAK, RACE = HostDefect.NEVER_RECORDED, HostDefect.LEAK, HostDefect.RACE
LEFT_OUT = {"fork": HostDefect.MISSING_FORK, "join": HostDefect.MISSING_JOIN}
LEFT_OUT |= dict.fromkeys(("record fork", "record ready", "record join"), NEVER)
LEFT_OUT |= dict.fromkeys(("copy in", "launch"), HostDefect.UNWRITTEN)
LEFT_OUT |= dict.fromkeys(("free y", "free x"), LEAK) | dict.fromkeys(("wait ready", "synchronize"), RACE)


@pytest.mark.parametrize("order", STREAM_ORDERS)
@pytest.mark.parametrize(("left_out", "kind"), LEFT_OUT.items())
def test_a_step_left_out_is_reported_in_any_order(
    order: StreamOrder, left_out: str, kind: HostDefect
) -> None:
    assert kind in Program(order).run(without=left_out)


WRONG_STEPS: dict[str, tuple[str, Callable[[Any], object], HostDefect]] = {
    "freed elsewhere": ("copy out", lambda p: (p.free("x", p.second), p.copy_back()), FREED_TWICE),
    "read after free": ("copy out", lambda p: (p.free("y", p.second), p.copy_back()), FREED),
    "freed before the launch": ("launch", lambda p: (p.free("x", p.second), p.start()), FREED),
    "freed twice": ("free x", lambda p: [p.free("x", p.first) for _ in range(2)], FREED_TWICE),
    "another event": ("record ready", lambda p: p.device.record_event(p.device.create_event(), 0), NEVER),
    "left at the end": ("end", lambda p: (p.device.allocate(8, p.first), p.watch.end_call(p.first)), LEAK),
    "copied too much": ("copy in", lambda p: p.copy_in(BYTES + 1), HostDefect.OUT_OF_BOUNDS),
    "copied to too early a byte": ("copy in", lambda p: p.copy_in(BYTES, -8), HostDefect.OUT_OF_BOUNDS),
    "filled amid reads": ("launch", lambda p: (p.start(), p.device.fill(p.made["x"], 0, 4, 64, 0)), RACE),
    "read too early": ("copy out", lambda p: (p.copy_back(), p.watch.host_reads(p.result_at, 4)), RACE),
    "written too early": ("copy in", lambda p: (p.copy_in(BYTES), p.watch.host_writes(p.source_at, 4)), RACE),
}


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("name", WRONG_STEPS)
def test_each_wrong_step_is_reported(name: str) -> None:
    step, change, kind = WRONG_STEPS[name]
    for order in STREAM_ORDERS:
        program = Program(order)
        assert kind in program.run(instead={step: partial(change, program)})


def test_every_method_does_what_the_port_says() -> None:
    device = SimulatedDevice()
    for name, call in call_everything(device, KERNEL):
        call()
        assert name
    assert device.reports == ()
    counts = device.counts
    assert (counts.streams_created, counts.streams_destroyed) == (1, 1)
    assert (counts.events_created, counts.events_destroyed) == (2, 2)
    assert (counts.allocations, counts.frees, counts.copies, counts.fills) == (1, 1, 3, 3)
    assert (counts.modules_loaded, counts.modules_unloaded, counts.launches) == (1, 1, 2)


def test_an_event_stands_for_what_was_there_when_it_was_recorded() -> None:
    device, found = SimulatedDevice("sm_90", "lifo"), np.zeros(4, np.uint8)
    stream, event = device.create_stream(), device.create_event()
    address = device.allocate(4, stream)
    device.fill(address, 1, 1, 4, stream)
    device.copy(found.ctypes.data, address, 4, stream)
    device.record_event(event, stream)
    device.fill(address, 2, 1, 4, stream)
    device.copy(found.ctypes.data, address, 4, stream)
    device.synchronize_event(event)
    assert found.tolist() == [1] * 4
    device.destroy_event(event)
    device.synchronize_stream(stream)
    assert found.tolist() == [2] * 4


def test_the_host_waits_for_a_stream_and_is_ordered_after_it_alone() -> None:
    device = SimulatedDevice()
    one, other = device.create_stream(), device.create_stream()
    a, b = device.allocate(4, one), device.allocate(4, other)
    device.synchronize_stream(one)
    device.fill(a, 0, 4, 1, other)  # its allocation is done
    assert device.reports == ()
    device.fill(b, 0, 4, 1, one)
    assert kinds_of(device) == [HostDefect.RACE]


def test_kernels_reach_pinned_and_registered_memory() -> None:
    program = Program("random", seed=2)
    device, host = program.device, np.zeros(64, np.float32)
    pinned = device.allocate_host(BYTES)
    ctypes.memmove(pinned, SOURCE.ctypes.data, BYTES)
    device.register_host(host.ctypes.data, BYTES)
    program.launch(pinned, host.ctypes.data, program.first)
    device.synchronize_stream(program.first)
    np.testing.assert_array_equal(host, 3 * SOURCE)
    device.unregister_host(host.ctypes.data)
    for reported in ([], [FREED_TWICE]):
        device.free_host(pinned)
        assert kinds_of(device) == reported


def test_freeing_pinned_memory_waits_for_its_work() -> None:
    device = SimulatedDevice()
    stream, pinned = device.create_stream(), device.allocate_host(4)
    found, address = np.zeros(4, np.uint8), device.allocate(4, stream)
    device.fill(pinned, 7, 1, 4, stream)
    device.copy(address, pinned, 4, stream)
    device.copy(found.ctypes.data, address, 4, stream)
    device.free_host(pinned)
    assert (found.tolist(), device.reports) == ([7] * 4, ())


def test_a_race_inside_of_a_kernel_is_reported() -> None:
    program = Program("fifo")
    device = program.device
    every_thread = SCALE.replace(b"add.s64 %rd2, %rd2, %rd3;", b"")  # all write to one place
    program.function = device.function(device.load_module(every_thread), "scale")
    x = device.allocate(BYTES, 0)
    device.copy(x, SOURCE.ctypes.data, BYTES, 0)
    program.launch(x, device.allocate(BYTES, 0), 0)
    device.synchronize_stream(0)
    assert kinds_of(device) == [HostDefect.KERNEL]
    assert "kernel scale: line" in str(device.reports[0])


def test_a_fault_shows_when_it_is_waited_for() -> None:
    program = Program("fifo")
    program.launch(64, 128, program.first)
    message = "kernel scale: CUDA_ERROR_LAUNCH_FAILED: .*in no buffer"
    with pytest.raises(DeviceError, match=message) as caught:
        program.device.synchronize_stream(program.first)
    assert caught.value.is_sticky


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.synchronize_stream(7), "INVALID_HANDLE: found stream 0x7, allowed 0 or one that exists"),
        (lambda d: d.destroy_stream(0), "INVALID_HANDLE: stream 0 cannot be destroyed"),
        (lambda d: d.allocate(4, 7), "INVALID_HANDLE: found stream 0x7"),
        (lambda d: d.record_event(7, 0), "INVALID_HANDLE: found event 0x7, allowed one that exists"),
        (lambda d: d.launch_graph(7, 0), "INVALID_HANDLE: found graph 0x7, allowed one that exists"),
        (lambda d: d.unload_module(7), "INVALID_HANDLE: found module 0x7, allowed one that is loaded"),
        (lambda d: d.free(64, 0), "INVALID_VALUE: found free of 0x40, allowed what was allocated here"),
        (lambda d: d.free_host(64), "INVALID_VALUE: found free of 0x40, allowed pinned memory made here"),
        (lambda d: d.unregister_host(64), "HOST_MEMORY_NOT_REGISTERED: found 0x40"),
        (lambda d: d.fill(64, 0, 4, 1, 0), "INVALID_VALUE: found a fill at 0x40, allowed device memory"),
        (lambda d: d.fill(64, 0, 3, 1, 0), r"INVALID_VALUE: found items of 3 bytes, allowed \(1, 2, 4\)"),
        (lambda d: d.elapsed_s(1, 2), "the simulator has no clock"),
        (lambda d: d.tensor_map(0, INTERLEAVED), "found interleave 1 and fill 0, allowed 0 and 0"),
        (lambda d: d.launch(IN_CLUSTERS, 0), r"clusters of \(2, 1, 1\) blocks, which are not simulated"),
    ],
)
def test_what_a_driver_refuses_is_refused(call: Callable[[SimulatedDevice], object], message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        call(SimulatedDevice())


def test_chip_and_order_must_be_known() -> None:
    with pytest.raises(UsageError, match="chip: found 'sm_1', allowed sm_80"):
        SimulatedDevice("sm_1")
    with pytest.raises(UsageError, match="order: found 'fast', allowed fifo, lifo, random"):
        SimulatedDevice(order="fast")  # type: ignore[arg-type]


def test_a_copy_of_nothing_reads_nothing() -> None:
    device = SimulatedDevice()
    empty = device.allocate(0, 0)  # of an array with a size of 0
    device.copy(SOURCE.ctypes.data, empty, 0, 0)
    device.synchronize_stream(0)
    assert device.reports == ()


class Capturing:
    """A device that captures its stream ``origin``; ``other`` is a second stream."""

    def __init__(self, order: StreamOrder = "fifo") -> None:
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


@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_a_graph_runs_its_branches_in_the_order_of_its_events(order: StreamOrder) -> None:
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


@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_a_graph_that_is_launched_on_a_captured_stream_is_part_of_the_new_graph(order: StreamOrder) -> None:
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
