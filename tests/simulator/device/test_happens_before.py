"""The order by vector clocks against reachability in a graph, and what is a race."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tuner.simulator.device.happens_before import (
    NO_BYTES,
    AccessHistory,
    ByteRanges,
    DefectLog,
    HostDefect,
    MemoryAccess,
    Moment,
    moment_after,
)

# Each moment: its queue, and which earlier ones it waits for beside the last of its queue.
PLANS = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 20), max_size=2)), max_size=14)
BYTES = ByteRanges.one(64, 8)


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


def history() -> tuple[AccessHistory, DefectLog]:
    log = DefectLog()
    return AccessHistory(log, lambda address: f"byte {address}"), log


def test_unordered_accesses_race_when_one_writes_where_the_other_is() -> None:
    elsewhere = ByteRanges.one(72, 8)
    for first, second, races in (
        ((BYTES, NO_BYTES), (BYTES, NO_BYTES), 0),
        ((BYTES, NO_BYTES), (NO_BYTES, BYTES), 1),
        ((NO_BYTES, BYTES), (BYTES, NO_BYTES), 1),
        ((NO_BYTES, BYTES), (NO_BYTES, BYTES), 1),
        ((NO_BYTES, BYTES), (NO_BYTES, elsewhere), 0),
    ):
        accesses, log = history()
        accesses.add(MemoryAccess("a", moment_after(1, ()), *first))
        accesses.add(MemoryAccess("b", moment_after(2, ()), *second))
        assert [report.kind for report in log.reports()] == [HostDefect.RACE] * races


def test_atomic_accesses_race_only_with_others() -> None:
    atomic, plain = (NO_BYTES, NO_BYTES), (BYTES, BYTES)
    for first, second, races in (
        (atomic, atomic, 0),
        (atomic, plain, 1),
        (plain, atomic, 1),
        (plain, plain, 1),
    ):
        accesses, log = history()
        accesses.add(MemoryAccess("a", moment_after(1, ()), BYTES, BYTES, *first))
        accesses.add(MemoryAccess("b", moment_after(2, ()), BYTES, BYTES, *second))
        assert [report.kind for report in log.reports()] == [HostDefect.RACE] * races


def test_a_race_does_not_depend_on_which_access_is_known_first() -> None:
    texts = set()
    one, other = (
        MemoryAccess(name, moment_after(queue, ()), NO_BYTES, BYTES) for queue, name in enumerate("ab")
    )
    for order in ((one, other), (other, one)):
        accesses, log = history()
        for access in order:
            accesses.add(access)
        texts.add(str(log.reports()[0]))
    assert texts == {"race: nothing orders a and b, both at byte 64"}


def test_an_access_known_late_is_ordered_by_its_moment() -> None:
    accesses, log = history()
    early = moment_after(1, ())
    accesses.add(MemoryAccess("late", moment_after(2, (early,)), NO_BYTES, BYTES))
    accesses.add(MemoryAccess("early", early, NO_BYTES, BYTES))
    assert log.reports() == ()


def test_what_is_forgotten_races_no_more() -> None:
    accesses, log = history()
    first, second = moment_after(1, ()), moment_after(2, ())
    accesses.add(MemoryAccess("a", first, NO_BYTES, BYTES))
    accesses.forget(first)
    accesses.add(MemoryAccess("b", second, NO_BYTES, BYTES))
    accesses.forget_before(moment_after(-1, (second,)))
    accesses.add(MemoryAccess("c", moment_after(3, ()), NO_BYTES, BYTES))
    assert log.reports() == ()


def test_equal_reports_are_counted() -> None:
    log = DefectLog()
    for _ in range(2):
        log.add(HostDefect.LEAK, "d0 is never freed")
    log.add(HostDefect.DOUBLE_FREE, "d0")
    assert [str(report) for report in log.reports()] == [
        "leak: d0 is never freed (2 times)",
        "double free: d0",
    ]


FLAGS = st.lists(st.booleans(), max_size=30)


def ranges(flags: list[bool], start: int = 100) -> ByteRanges:
    """Returns the ranges of the flags that are set; neighbours may be ranges of their own."""
    pairs = [[start + index, start + index + 1] for index, is_set in enumerate(flags) if is_set]
    return ByteRanges.of([np.array(pairs[half::2], np.int64).reshape(-1, 2) for half in (0, 1)])


@given(FLAGS, FLAGS)
def test_the_first_common_byte_is_that_of_the_sets(mine: list[bool], theirs: list[bool]) -> None:
    common = [100 + index for index, both in enumerate(zip(mine, theirs, strict=False)) if all(both)]
    expected = common[0] if common else None
    assert ranges(mine).first_common(ranges(theirs)) == expected
    assert ranges(theirs).first_common(ranges(mine)) == expected


def test_ranges_that_only_meet_have_nothing_in_common() -> None:
    assert ByteRanges.one(0, 8).first_common(ByteRanges.one(8, 8)) is None
    assert ByteRanges.one(0, 9).first_common(ByteRanges.one(8, 8)) == 8
    assert ByteRanges.one(4, 100).first_common(ByteRanges.one(8, 8)) == 8


def test_no_bytes_have_nothing_in_common() -> None:
    assert ByteRanges.one(8, 0) is NO_BYTES
    assert NO_BYTES.first_common(ByteRanges.one(0, 8)) is None
