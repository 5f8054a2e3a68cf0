"""Streams: the order by vector clocks, races, and kernels that wait for each other."""

import ctypes
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gpu.ptxsim.device.test_kernels import Parameters
from tests.texts import text_beside
from tuner.core.device import STREAM_ORDERS, Extent, KernelLaunch, StreamOrder
from tuner.core.errors import DeviceError
from tuner.gpu.ptxsim.device import happens_before
from tuner.gpu.ptxsim.device.happens_before import ByteRanges, DefectLog, MemoryAccess, Moment, moment_after
from tuner.gpu.ptxsim.device.simulated_device import SimulatedDevice
from tuner.gpu.ptxsim.device.streams import LazyStreams, StreamOperation, Work

# Three times: waits until the counter is at %want, counts, and wants two more.
TURNS = text_beside(__file__, "TURNS").encode()
LOOP = r"thread \(0, 0, 0\) of block \(0, 0, 0\) repeats lines 8 to 10 of the PTX"
FLAGS = st.lists(st.booleans(), max_size=30)


class Counter:
    def __init__(self, order: StreamOrder = "fifo") -> None:
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
@pytest.mark.parametrize("order", STREAM_ORDERS)
def test_kernels_of_two_streams_that_wait_for_each_other_run_in_turns(order: StreamOrder) -> None:
    counter = Counter(order)
    counter.launch(0, 0)
    counter.launch(1, 1)
    counter.device.synchronize_stream(counter.streams[0])  # needs the kernel of the other stream
    counter.device.synchronize_stream(counter.streams[1])
    assert (counter.value(), counter.device.reports) == (6, ())


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
    monkeypatch.setattr("tuner.gpu.ptxsim.engine.STEPS_LIMIT", 1 << 11)
    monkeypatch.setattr("tuner.gpu.ptxsim.engine.PAUSE_BLOCKS", 1 << 11)
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
    monkeypatch.setattr("tuner.gpu.ptxsim.engine.PAUSE_BLOCKS", 1 << 11)
    counter = Counter()
    counter.function = counter.device.function(counter.device.load_module(text), "turns")
    counter.launch(0, 0)
    counter.device.synchronize_stream(counter.streams[0])
    assert counter.value() == 1


# Streams run as late as they may, and only what is needed. Of each work: its queue, and what it waits for.
PLANS = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 20), max_size=2)), max_size=14)


def submitted(streams: LazyStreams, plan: list[tuple[int, list[int]]], ran: list[int]) -> list[Work]:
    works: list[Work] = []
    for number, (queue, waits) in enumerate(plan):
        after = tuple(works[wait] for wait in waits if wait < number)
        works.append(streams.submit(queue, StreamOperation(str(number), partial(_note, ran, number)), after))
    return works


def _note(ran: list[int], number: int, _: Moment) -> None:
    ran.append(number)


def require_order(works: list[Work], ran: list[int]) -> None:
    for later, number in enumerate(ran):
        assert not any(works[number].moment.is_before(works[other].moment) for other in ran[:later])


@given(PLANS, st.sampled_from(STREAM_ORDERS), st.integers(0, 3), st.data())
def test_only_what_is_needed_runs_in_an_order_that_keeps_the_waits(
    plan: list[tuple[int, list[int]]], order: StreamOrder, seed: int, data: st.DataObject
) -> None:
    ran: list[int] = []
    streams = LazyStreams(order, seed)
    works = submitted(streams, plan, ran)
    assert ran == []
    if not works:
        return
    target = data.draw(st.integers(0, len(works) - 1))
    streams.wait_for(works[target])
    needed = [n for n, work in enumerate(works) if work.moment.is_before(works[target].moment)]
    assert sorted(ran) == needed
    require_order(works, ran)
    assert all(works[number].moment.is_before(streams.host) for number in needed)
    streams.wait_for_all()
    assert (sorted(ran), streams.pending) == (list(range(len(works))), ())


def test_dropped_work_holds_nothing_up() -> None:
    ran: list[int] = []
    streams = LazyStreams("fifo", 0)
    works = submitted(streams, [(0, []), (0, [])], ran)
    streams.drop(works[0])
    streams.wait_for(works[1])
    assert ran == [1]


@given(PLANS, st.sampled_from(STREAM_ORDERS), st.integers(0, 3), st.sets(st.integers(0, 13)))
def test_all_but_the_dropped_work_runs_and_keeps_its_order(
    plan: list[tuple[int, list[int]]], order: StreamOrder, seed: int, dropped: set[int]
) -> None:
    ran: list[int] = []
    streams = LazyStreams(order, seed)
    works = submitted(streams, plan, ran)
    for number in sorted(dropped):
        if number < len(works):
            streams.drop(works[number])
    streams.submit(0, StreamOperation("later"))
    streams.wait_for_all()
    assert sorted(ran) == [number for number in range(len(works)) if number not in dropped]
    require_order(works, ran)
    assert streams.pending == ()


def test_orders_differ_among_streams_that_nothing_orders() -> None:
    plan: list[tuple[int, list[int]]] = [(queue, []) for queue in (0, 1, 2, 0, 1, 2)]
    found: dict[StreamOrder, list[int]] = {order: [] for order in STREAM_ORDERS}
    for order, ran in found.items():
        streams = LazyStreams(order, 1)
        works = submitted(streams, plan, ran)
        streams.wait_for(streams.submit(9, StreamOperation("join"), works))
    ran = found.pop("random")
    assert found == {"fifo": [0, 1, 2, 3, 4, 5], "lifo": [2, 5, 1, 4, 0, 3]}
    assert sorted(ran) == [0, 1, 2, 3, 4, 5]
    assert ran not in found.values()


def test_work_after_a_wait_of_the_host_is_ordered_after_it() -> None:
    streams = LazyStreams("fifo", 0)
    first = streams.submit(1, StreamOperation("first"))
    unseen = streams.submit(2, StreamOperation("unseen"))
    streams.wait_for(first)
    behind = streams.submit(3, StreamOperation("behind"))
    assert first.moment.is_before(behind.moment)
    assert not unseen.moment.is_before(behind.moment)
    assert streams.host_moment().is_before(streams.submit(4, StreamOperation("last")).moment)


# The order by vector clocks against reachability in a graph, and what is a race.
BYTES, NO_BYTES = ByteRanges.one(64, 8), happens_before.NO_BYTES


@given(PLANS)
def test_order_is_reachability(plan: list[tuple[int, list[int]]]) -> None:
    moments: list[Moment] = []
    reachable: list[set[int]] = []
    last: dict[int, int] = {}
    for queue, waits in plan:
        before = {wait for wait in waits if wait < len(moments)} | ({last[queue]} if queue in last else set())
        moments.append(moment_after(queue, [moments[each] for each in sorted(before)]))
        reachable.append(before.union({len(moments) - 1}, *(reachable[each] for each in before)))
        last[queue] = len(moments) - 1
    for later, known in enumerate(reachable):
        for earlier in range(later):
            assert moments[earlier].is_before(moments[later]) == (earlier in known)
            assert not moments[later].is_before(moments[earlier])


def history() -> tuple[happens_before.AccessHistory, DefectLog]:
    log = DefectLog()
    return happens_before.AccessHistory(log, lambda address: f"byte {address}"), log


READ, WRITE, ELSEWHERE = (BYTES, NO_BYTES), (NO_BYTES, BYTES), (NO_BYTES, ByteRanges.one(72, 8))
PLAIN, ATOMIC = (BYTES, BYTES, BYTES, BYTES), (BYTES, BYTES, NO_BYTES, NO_BYTES)


@pytest.mark.parametrize(
    ("first", "second", "races"),
    [
        *((READ, READ, 0), (READ, WRITE, 1), (WRITE, READ, 1), (WRITE, WRITE, 1), (WRITE, ELSEWHERE, 0)),
        *((ATOMIC, ATOMIC, 0), (ATOMIC, PLAIN, 1), (PLAIN, ATOMIC, 1), (PLAIN, PLAIN, 1)),
    ],
)
def test_unordered_accesses_race_when_one_writes_where_the_other_is(
    first: tuple[ByteRanges, ...], second: tuple[ByteRanges, ...], races: int
) -> None:
    accesses, log = history()
    accesses.add(MemoryAccess("a", moment_after(1, ()), *first))
    accesses.add(MemoryAccess("b", moment_after(2, ()), *second))
    assert [report.kind for report in log.reports()] == [happens_before.HostDefect.RACE] * races


def test_a_race_does_not_depend_on_which_access_is_known_first() -> None:
    texts = set()
    one, other = (MemoryAccess(name, moment_after(queue, ()), *WRITE) for queue, name in enumerate("ab"))
    for order in ((one, other), (other, one)):
        accesses, log = history()
        for access in order:
            accesses.add(access)
        texts.add(str(log.reports()[0]))
    assert texts == {"race: nothing orders a and b, both at byte 64"}


def test_an_access_known_late_is_ordered_by_its_moment_and_what_is_forgotten_races_no_more() -> None:
    accesses, log = history()
    early = moment_after(1, ())
    accesses.add(MemoryAccess("late", moment_after(2, (early,)), *WRITE))
    accesses.add(MemoryAccess("early", early, *WRITE))
    assert log.reports() == ()
    accesses, log = history()
    first, second = moment_after(1, ()), moment_after(2, ())
    accesses.add(MemoryAccess("a", first, *WRITE))
    accesses.forget(first)
    accesses.add(MemoryAccess("b", second, *WRITE))
    accesses.forget_before(moment_after(-1, (second,)))
    accesses.add(MemoryAccess("c", moment_after(3, ()), *WRITE))
    assert log.reports() == ()


def test_equal_reports_are_counted() -> None:
    log = DefectLog()
    for _ in range(2):
        log.add(happens_before.HostDefect.LEAK, "d0 is never freed")
    log.add(happens_before.HostDefect.DOUBLE_FREE, "d0")
    assert [*map(str, log.reports())] == ["leak: d0 is never freed (2 times)", "double free: d0"]


def ranges(flags: list[bool], start: int = 100) -> ByteRanges:
    """Returns the ranges of the flags that are set; neighbours may be ranges of their own."""
    pairs = [[start + index, start + index + 1] for index, is_set in enumerate(flags) if is_set]
    return ByteRanges.of([np.array(pairs[half::2], np.int64).reshape(-1, 2) for half in (0, 1)])


@given(FLAGS, FLAGS)
def test_the_first_common_byte_is_that_of_the_sets(mine: list[bool], theirs: list[bool]) -> None:
    common = (100 + index for index, both in enumerate(zip(mine, theirs, strict=False)) if all(both))
    expected = next(common, None)
    assert ranges(mine).first_common(ranges(theirs)) == expected
    assert ranges(theirs).first_common(ranges(mine)) == expected


def test_ranges_that_only_meet_have_nothing_in_common() -> None:
    for start, size, common in ((0, 8, None), (0, 9, 8), (4, 100, 8)):
        assert ByteRanges.one(start, size).first_common(ByteRanges.one(8, 8)) == common
    assert ByteRanges.one(8, 0) is NO_BYTES
    assert NO_BYTES.first_common(ByteRanges.one(0, 8)) is None
