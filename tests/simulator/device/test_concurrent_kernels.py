"""Kernels on different streams that wait for each other run in turns, or are an error that names both."""

import ctypes

import pytest

from tests.simulator.device.test_kernels import Parameters
from tuner.core.gpu import DeviceError, Extent, KernelLaunch
from tuner.simulator.device.simulated_device import SimulatedDevice
from tuner.simulator.device.streams import ORDERS, Order

# Three times: waits until the counter is at %want, counts, and wants two more.
TURNS = b""".version 8.0
.target sm_90
.address_size 64
.visible .entry turns(.param .u64 a, .param .u32 first) {
  .reg .b64 %p; .reg .b32 %want, %r, %old; .reg .pred %q;
  ld.param.u64 %p, [a]; ld.param.u32 %want, [first]; mov.u32 %r, 0;
WAIT:
  atom.global.add.u32 %old, [%p], 0;
  setp.ne.u32 %q, %old, %want;
  @%q bra WAIT;
  atom.global.add.u32 %old, [%p], 1; add.u32 %want, %want, 2; add.u32 %r, %r, 1;
  setp.lt.u32 %q, %r, 3; @%q bra WAIT;
  ret; }
"""
LOOP = r"thread \(0, 0, 0\) of block \(0, 0, 0\) repeats lines 8 to 10 of the PTX"


class Counter:
    """A counter on a simulated device, and kernels that count when it is at a number."""

    def __init__(self, order: Order = "fifo") -> None:
        self.device = SimulatedDevice(order=order)
        self.streams = [self.device.create_stream() for _ in range(2)]
        self.memory = self.device.allocate(4, 0)
        self.device.fill(self.memory, 0, 4, 1, 0)
        self.device.synchronize_stream(0)
        self.function = self.device.function(self.device.load_module(TURNS), "turns")

    def launch(self, first: int, stream: int) -> None:
        given = Parameters(ctypes.c_uint64(self.memory), ctypes.c_uint32(first))
        launch = KernelLaunch(self.function, Extent(1), Extent(1), 0, given.address, given.count)
        self.device.launch(launch, self.streams[stream])

    def value(self) -> int:
        found = ctypes.c_uint32()
        self.device.copy(ctypes.addressof(found), self.memory, 4, 0)
        self.device.synchronize_stream(0)
        return found.value


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_kernels_of_two_streams_that_wait_for_each_other_run_in_turns(order: Order) -> None:
    counter = Counter(order)
    counter.launch(0, 0)
    counter.launch(1, 1)
    counter.device.synchronize_stream(counter.streams[0])  # needs the kernel of the other stream
    counter.device.synchronize_stream(counter.streams[1])
    assert counter.value() == 6
    assert counter.device.reports == ()


@pytest.mark.slow
def test_kernels_that_nothing_lets_go_on_are_an_error_that_names_both() -> None:
    counter = Counter()
    counter.launch(3, 0)
    counter.launch(5, 1)
    reason = f"CUDA_ERROR_LAUNCH_TIMEOUT: endless: nothing .*: kernel turns: {LOOP}; kernel turns: {LOOP}$"
    with pytest.raises(DeviceError, match=reason) as caught:
        counter.device.synchronize_stream(counter.streams[1])
    assert caught.value.is_sticky
    assert counter.value() == 0  # nothing of it is left to run


@pytest.mark.slow
def test_a_kernel_that_waits_for_a_later_one_of_its_stream_is_an_error() -> None:
    counter = Counter()
    counter.launch(1, 0)
    counter.launch(0, 0)
    with pytest.raises(DeviceError, match=f"waited for: kernel turns: {LOOP}$"):
        counter.device.synchronize_stream(counter.streams[0])


@pytest.mark.slow
def test_a_limit_names_the_kernel_that_ran_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = TURNS.replace(b"setp.ne.u32", b"add.u32 %r, %r, 1; setp.ne.u32")  # its state is never the same
    monkeypatch.setattr("tuner.simulator.launch.STEPS_LIMIT", 1 << 11)
    monkeypatch.setattr("tuner.simulator.launch.LONG_TURN", 1 << 11)
    counter = Counter()
    counter.launch(3, 0)
    counter.function = counter.device.function(counter.device.load_module(counting), "turns")
    counter.launch(5, 1)
    limit = "endless: found more than 2048 basic blocks: "
    reason = f"kernel turns: .*: {limit}.*; at the same time kernel turns: {LOOP}$"
    with pytest.raises(DeviceError, match=reason):
        counter.device.synchronize_stream(counter.streams[0])
    for stream in counter.streams:  # nothing is left to run
        counter.device.synchronize_stream(stream)


@pytest.mark.slow
def test_a_kernel_that_counts_for_many_turns_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TURNS.replace(b"WAIT:", b"WAIT: add.u32 %r, %r, 1; setp.lt.u32 %q, %r, 9000; @%q bra WAIT;", 1)
    monkeypatch.setattr("tuner.simulator.launch.LONG_TURN", 1 << 11)
    counter = Counter()
    counter.function = counter.device.function(counter.device.load_module(text), "turns")
    counter.launch(0, 0)
    counter.device.synchronize_stream(counter.streams[0])
    assert counter.value() == 1
