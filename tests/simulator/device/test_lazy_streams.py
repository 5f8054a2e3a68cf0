"""Streams that run as late as they may, and only what is needed."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from tuner.simulator.device.happens_before import Moment
from tuner.simulator.device.streams import ORDERS, LazyStreams, Order, StreamOperation, Work

PLANS = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 20), max_size=2)), max_size=14)


def submitted(streams: LazyStreams, plan: list[tuple[int, list[int]]], ran: list[int]) -> list[Work]:
    works: list[Work] = []
    for number, (queue, waits) in enumerate(plan):
        after = tuple(works[wait] for wait in waits if wait < number)
        operation = StreamOperation(str(number), partial(_note, ran, number))
        works.append(streams.submit(queue, operation, after))
    return works


def _note(ran: list[int], number: int, _: Moment) -> None:
    ran.append(number)


@given(PLANS, st.sampled_from(ORDERS), st.integers(0, 3), st.data())
def test_only_what_is_needed_runs_in_an_order_that_keeps_the_waits(
    plan: list[tuple[int, list[int]]], order: Order, seed: int, data: st.DataObject
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
    for later, number in enumerate(ran):
        assert not any(works[number].moment.is_before(works[other].moment) for other in ran[:later])
    assert all(works[number].moment.is_before(streams.host) for number in needed)
    streams.wait_for_all()
    assert sorted(ran) == list(range(len(works)))
    assert streams.pending == ()


def test_orders_differ_among_streams_that_nothing_orders() -> None:
    plan = [(queue, [int(queue == 9)] * 0) for queue in (0, 1, 2, 0, 1, 2)]
    found = {}
    for order in ("fifo", "lifo"):
        ran: list[int] = []
        streams = LazyStreams(order, 0)
        works = submitted(streams, plan, ran)
        streams.wait_for(streams.submit(9, StreamOperation("join"), works))
        found[order] = ran
    assert found == {"fifo": [0, 1, 2, 3, 4, 5], "lifo": [2, 5, 1, 4, 0, 3]}
    ran = []
    streams = LazyStreams("random", 1)
    works = submitted(streams, plan, ran)
    streams.wait_for(streams.submit(9, StreamOperation("join"), works))
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


def test_dropped_work_never_runs_and_holds_nothing_up() -> None:
    ran: list[int] = []
    streams = LazyStreams("fifo", 0)
    works = submitted(streams, [(0, []), (0, [])], ran)
    streams.drop(works[0])
    streams.wait_for(works[1])
    assert ran == [1]


@given(PLANS, st.sampled_from(ORDERS), st.integers(0, 3), st.sets(st.integers(0, 13)))
def test_all_but_the_dropped_work_runs_and_keeps_its_order(
    plan: list[tuple[int, list[int]]], order: Order, seed: int, dropped: set[int]
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
    for later, number in enumerate(ran):
        assert not any(works[number].moment.is_before(works[other].moment) for other in ran[:later])
    assert streams.pending == ()
