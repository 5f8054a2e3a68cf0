"""The team of threads: every call is made, once a round, and joined."""

import contextlib
import ctypes
import faulthandler
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from tests.texts import text_beside
from tuner.runtime.cpu import thread_team
from tuner.runtime.cpu.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.thread_team import ThreadTeam

pytestmark = pytest.mark.mlir
HANG_S = 300.0  # a lost wake-up would hang for ever: end with a traceback instead

# count: adds one to a plain counter of its own. copy_next: writes one more than what another's counter holds.
CODE = text_beside(__file__, "CODE")

COPY_NUMBER = text_beside(__file__, "COPY_NUMBER")


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def code() -> JittedModule:
    return JittedModule(CODE, ("count", "copy_next"))


class Counters:
    """A call for each member that counts how often it was made."""

    def __init__(self, code: JittedModule, size: int) -> None:
        self._memory = (ctypes.c_int64 * (16 * size))()  # 128 bytes each: no cache line is shared
        self._arguments = [PackedArguments(ctypes.addressof(self._memory) + 128 * i) for i in range(size)]
        self.calls = tuple((code.addresses["count"], one.address) for one in self._arguments)

    @property
    def values(self) -> list[int]:
        return list(self._memory[::16])


@pytest.fixture
def make() -> Iterator[Callable[[int], ThreadTeam]]:
    """Gives what makes a team that is closed after the test."""
    with ExitStack() as closing:
        yield lambda size: closing.enter_context(contextlib.closing(ThreadTeam(size)))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("size", [1, 2, 3, 2 * (os.cpu_count() or 1) + 3])
def test_every_member_is_called_once_a_round_however_many_there_are(
    code: JittedModule, make: Callable[[int], ThreadTeam], size: int
) -> None:
    team = make(size)
    counters = Counters(code, size)
    team.repeat(counters.calls, 500)
    for _ in range(50):
        team.repeat(counters.calls, 1)
    team.repeat(counters.calls, 0)
    assert counters.values == [550] * size


def test_a_round_begins_when_the_last_has_ended(
    code: JittedModule, make: Callable[[int], ThreadTeam]
) -> None:
    """Two counters chase one another: each call reads the other's and writes one more.

    With every round joined, the larger grows by one or two a round; a call that ran on would lose steps.
    """
    team = make(2)
    memory = (ctypes.c_int64 * 64)()
    base = ctypes.addressof(memory)
    memory[0], memory[32] = base + 8 * 33, base + 8  # each points at the other's counter
    places = [PackedArguments(base), PackedArguments(base + 8 * 32)]
    calls = tuple((code.addresses["copy_next"], place.address) for place in places)
    for rounds in range(1, 2001):
        team.repeat(calls, 1)
        assert rounds <= max(memory[1], memory[33]) <= 2 * rounds
        assert abs(memory[1] - memory[33]) <= 1


@pytest.mark.slow
def test_members_that_doze_off_early_are_always_woken(
    code: JittedModule, make: Callable[[int], ThreadTeam], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that comes in the very moment of dozing off is where a wake-up could be lost."""
    for limit in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        monkeypatch.setattr(thread_team, "SPIN_LIMIT", limit)
        team = make(2)
        counters = Counters(code, 2)
        team.repeat(counters.calls, 20_000)
        for _ in range(500):
            team.repeat(counters.calls, 1)
        assert counters.values == [20_500] * 2
        team.close()


def test_members_asleep_for_long_are_woken_and_use_no_processor(
    code: JittedModule, make: Callable[[int], ThreadTeam]
) -> None:
    team = make(3)
    counters = Counters(code, 3)
    team.repeat(counters.calls, 1)
    give_up = time.monotonic() + 120
    used_s = math.inf
    while used_s > 0.05 and time.monotonic() < give_up:  # they spin for 2 ms, longer on a loaded machine
        before_s = time.process_time()
        time.sleep(0.2)
        used_s = time.process_time() - before_s
    assert used_s <= 0.05
    team.repeat(counters.calls, 1)
    assert counters.values == [2] * 3


def test_fewer_calls_than_members_leave_the_others_alone(
    code: JittedModule, make: Callable[[int], ThreadTeam]
) -> None:
    team = make(4)
    counters = Counters(code, 4)
    team.repeat(counters.calls[:2], 10)
    team.repeat(counters.calls[:1], 10)
    team.repeat(counters.calls, 10)
    assert counters.values == [30, 20, 10, 10]


def test_watched_rounds_find_a_changed_input_and_a_nan_and_give_the_input_back(
    code: JittedModule, make: Callable[[int], ThreadTeam]
) -> None:
    """A call that copies the marked number on writes it; one that counts leaves it unwritten."""
    team = make(1)
    numbers = np.array([1.5, 2.5], np.float32)
    ends = [numbers.ctypes.data + 4 * at - back for at, back in ((1, 1), (2, 2))]
    marks = np.array([ends], np.uint64)
    counters = Counters(code, 1)
    assert team.watch(counters.calls, 7, marks) == 7
    assert counters.values == [7]
    assert numbers[0] == 1.5
    assert np.isnan(numbers[1])
    copy = JittedModule(COPY_NUMBER, ("copy_number",))
    argument = PackedArguments(numbers.ctypes.data)
    assert team.watch(((copy.addresses["copy_number"], argument.address),), 7, marks) == 0
    assert numbers.tolist() == [1.5, -1.5]


def test_marks_of_another_shape_and_other_numbers_of_calls_are_refused(
    code: JittedModule, make: Callable[[int], ThreadTeam]
) -> None:
    calls = Counters(code, 3).calls
    with pytest.raises(ValueError, match=r"marks: found shape \(3, 2\), allowed \(a power of two, 2\)"):
        make(1).watch(calls[:1], 1, np.zeros((3, 2), np.uint64))
    for count in (0, 3):
        with pytest.raises(ValueError, match=rf"^team of 2: found {count} calls$"):
            make(2).repeat(calls[:count], 1)


def test_two_teams_work_side_by_side(code: JittedModule, make: Callable[[int], ThreadTeam]) -> None:
    teams = make(3), make(3)
    counters = Counters(code, 3), Counters(code, 3)

    def work(number: int) -> None:
        for _ in range(300):
            teams[number].repeat(counters[number].calls, 5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.values for one in counters] == [[1500] * 3] * 2


@pytest.mark.parametrize(("rounds", "nap_s"), [(10, 0.0), (10, 0.05), (0, 0.0)])
def test_closing_ends_the_threads_busy_or_asleep_or_never_used(
    code: JittedModule, rounds: int, nap_s: float
) -> None:
    before = threading.active_count()
    team, counters = ThreadTeam(4), Counters(code, 4)
    if rounds:
        team.repeat(counters.calls, rounds)
        time.sleep(nap_s)
        assert threading.active_count() == before + 3
    team.close()
    assert threading.active_count() == before
    team.close()


def test_pinned_members_stay_on_their_processors(
    code: JittedModule, make: Callable[[int], ThreadTeam]
) -> None:
    allowed = os.sched_getaffinity(0)
    team = make(2)
    try:
        team.pin((min(allowed), max(allowed)))
        assert os.sched_getaffinity(0) == {min(allowed)}
        members = [thread.native_id for thread in team.members.threads]
        assert [os.sched_getaffinity(one or 0) for one in members] == [{max(allowed)}]
    finally:
        os.sched_setaffinity(0, allowed)
    counters = Counters(code, 2)
    team.repeat(counters.calls, 10)
    assert counters.values == [10, 10]


@pytest.mark.slow
def test_the_interpreter_runs_on_while_a_team_works(
    code: JittedModule, make: Callable[[int], ThreadTeam]
) -> None:
    team = make(1)
    counters = Counters(code, 1)
    worker = threading.Thread(target=team.repeat, args=(counters.calls, 300_000_000))
    worker.start()
    ticks = 0
    while worker.is_alive() and ticks < 5:
        time.sleep(0.001)
        ticks += 1
    was_alive = worker.is_alive()
    worker.join()
    assert was_alive
