"""The team of threads: every call is made, once a round, and joined."""

import ctypes
import faulthandler
import math
import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tuner.runtime.cpu import thread_team
from tuner.runtime.cpu.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.thread_team import ThreadTeam

pytestmark = pytest.mark.mlir
HANG_S = 300.0  # a lost wake-up would hang for ever: end with a traceback instead

# count: adds one to a plain counter of its own. copy_next: writes one more than what another's counter holds.
CODE = """
module {
  llvm.func @count(%counter: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %one = llvm.mlir.constant(1 : i64) : i64
    %old = llvm.load %counter : !llvm.ptr -> i64
    %new = llvm.add %old, %one : i64
    llvm.store %new, %counter : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @copy_next(%place: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %other = llvm.load %place : !llvm.ptr -> !llvm.ptr
    %mine = llvm.getelementptr %place[8] : (!llvm.ptr) -> !llvm.ptr, i8
    %one = llvm.mlir.constant(1 : i64) : i64
    %old = llvm.load %other : !llvm.ptr -> i64
    %new = llvm.add %old, %one : i64
    llvm.store %new, %mine : i64, !llvm.ptr
    llvm.return
  }
}
"""


COPY_NUMBER = """
llvm.func @copy_number(%numbers: !llvm.ptr) attributes {llvm.emit_c_interface} {
  %next = llvm.getelementptr %numbers[4] : (!llvm.ptr) -> !llvm.ptr, i8
  %number = llvm.load %numbers : !llvm.ptr -> f32
  llvm.store %number, %next : f32, !llvm.ptr
  llvm.return
}
"""


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
def made() -> Iterator[list[ThreadTeam]]:
    teams: list[ThreadTeam] = []
    yield teams
    for team in teams:
        team.close()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("size", [1, 2, 3, 2 * (os.cpu_count() or 1) + 3])
def test_every_member_is_called_once_a_round_however_many_there_are(
    code: JittedModule, made: list[ThreadTeam], size: int
) -> None:
    made.append(ThreadTeam(size))
    counters = Counters(code, size)
    made[0].repeat(counters.calls, 500)
    for _ in range(50):
        made[0].repeat(counters.calls, 1)
    made[0].repeat(counters.calls, 0)
    assert counters.values == [550] * size


def test_a_round_begins_when_the_last_has_ended(code: JittedModule, made: list[ThreadTeam]) -> None:
    """Two counters chase one another: each call reads the other's and writes one more.

    With every round joined, the larger grows by one or two a round; a call that ran on would lose steps.
    """
    made.append(ThreadTeam(2))
    memory = (ctypes.c_int64 * 64)()
    base = ctypes.addressof(memory)
    memory[0], memory[32] = base + 8 * 33, base + 8  # each points at the other's counter
    places = [PackedArguments(base), PackedArguments(base + 8 * 32)]
    calls = tuple((code.addresses["copy_next"], place.address) for place in places)
    for rounds in range(1, 2001):
        made[0].repeat(calls, 1)
        assert rounds <= max(memory[1], memory[33]) <= 2 * rounds
        assert abs(memory[1] - memory[33]) <= 1


@pytest.mark.slow
def test_quick_repeats_lose_no_call(code: JittedModule, made: list[ThreadTeam]) -> None:
    """Few enough for a loaded machine, where each round may cost a time slice."""
    made.append(ThreadTeam(3))
    counters = Counters(code, 3)
    for _ in range(1000):
        made[0].repeat(counters.calls, 1)
    assert counters.values == [1000] * 3


@pytest.mark.slow
def test_members_that_doze_off_early_are_always_woken(
    code: JittedModule, made: list[ThreadTeam], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work that comes in the very moment of dozing off is where a wake-up could be lost."""
    for limit in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        monkeypatch.setattr(thread_team, "SPIN_LIMIT", limit)
        team = ThreadTeam(2)
        made.append(team)
        counters = Counters(code, 2)
        team.repeat(counters.calls, 20_000)
        for _ in range(500):
            team.repeat(counters.calls, 1)
        assert counters.values == [20_500] * 2
        team.close()


def test_members_asleep_for_long_are_woken_and_use_no_processor(
    code: JittedModule, made: list[ThreadTeam]
) -> None:
    made.append(ThreadTeam(3))
    counters = Counters(code, 3)
    made[0].repeat(counters.calls, 1)
    give_up = time.monotonic() + 120
    used_s = math.inf
    while used_s > 0.05 and time.monotonic() < give_up:  # they spin for 2 ms, longer on a loaded machine
        before_s = time.process_time()
        time.sleep(0.2)
        used_s = time.process_time() - before_s
    assert used_s <= 0.05
    made[0].repeat(counters.calls, 1)
    assert counters.values == [2] * 3


def test_fewer_calls_than_members_leave_the_others_alone(code: JittedModule, made: list[ThreadTeam]) -> None:
    made.append(ThreadTeam(4))
    counters = Counters(code, 4)
    made[0].repeat(counters.calls[:2], 10)
    made[0].repeat(counters.calls[:1], 10)
    made[0].repeat(counters.calls, 10)
    assert counters.values == [30, 20, 10, 10]


def test_watched_rounds_find_a_changed_input_and_a_nan_and_give_the_input_back(
    code: JittedModule, made: list[ThreadTeam]
) -> None:
    """A call that copies the marked number on writes it; one that counts leaves it unwritten."""
    made.append(ThreadTeam(1))
    numbers = np.array([1.5, 2.5], np.float32)
    ends = [numbers.ctypes.data + 4 * at - back for at, back in ((1, 1), (2, 2))]
    marks = np.array([ends], np.uint64)
    counters = Counters(code, 1)
    assert made[0].watch(counters.calls, 7, marks) == 7
    assert counters.values == [7]
    assert numbers[0] == 1.5
    assert np.isnan(numbers[1])
    copy = JittedModule(COPY_NUMBER, ("copy_number",))
    argument = PackedArguments(numbers.ctypes.data)
    assert made[0].watch(((copy.addresses["copy_number"], argument.address),), 7, marks) == 0
    assert numbers.tolist() == [1.5, -1.5]


def test_marks_of_another_shape_are_refused(code: JittedModule, made: list[ThreadTeam]) -> None:
    made.append(ThreadTeam(1))
    with pytest.raises(ValueError, match=r"marks: found shape \(3, 2\), allowed \(a power of two, 2\)"):
        made[0].watch(Counters(code, 1).calls, 1, np.zeros((3, 2), np.uint64))


def test_two_teams_work_side_by_side(code: JittedModule, made: list[ThreadTeam]) -> None:
    made.extend((ThreadTeam(3), ThreadTeam(3)))
    counters = Counters(code, 3), Counters(code, 3)

    def work(number: int) -> None:
        for _ in range(300):
            made[number].repeat(counters[number].calls, 5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.values for one in counters] == [[1500] * 3] * 2


@pytest.mark.parametrize("count", [0, 3])
def test_a_team_takes_as_many_calls_as_it_has_members(
    code: JittedModule, made: list[ThreadTeam], count: int
) -> None:
    made.append(ThreadTeam(2))
    counters = Counters(code, 3)
    with pytest.raises(ValueError, match=rf"^team of 2: found {count} calls$"):
        made[0].repeat(counters.calls[:count], 1)


@pytest.mark.parametrize("nap_s", [0.0, 0.05])
def test_closing_ends_the_threads_busy_or_asleep(code: JittedModule, nap_s: float) -> None:
    before = threading.active_count()
    team = ThreadTeam(4)
    counters = Counters(code, 4)
    team.repeat(counters.calls, 10)
    time.sleep(nap_s)
    assert threading.active_count() == before + 3
    team.close()
    assert threading.active_count() == before
    team.close()


def test_a_team_that_was_never_used_can_be_closed() -> None:
    before = threading.active_count()
    ThreadTeam(3).close()
    assert threading.active_count() == before


def test_pinned_members_stay_on_their_processors(code: JittedModule, made: list[ThreadTeam]) -> None:
    allowed = os.sched_getaffinity(0)
    made.append(ThreadTeam(2))
    try:
        made[0].pin((min(allowed), max(allowed)))
        assert os.sched_getaffinity(0) == {min(allowed)}
        members = [thread.native_id for thread in made[0].members.threads]
        assert [os.sched_getaffinity(one or 0) for one in members] == [{max(allowed)}]
    finally:
        os.sched_setaffinity(0, allowed)
    counters = Counters(code, 2)
    made[0].repeat(counters.calls, 10)
    assert counters.values == [10, 10]


@pytest.mark.slow
def test_the_interpreter_runs_on_while_a_team_works(code: JittedModule, made: list[ThreadTeam]) -> None:
    made.append(ThreadTeam(1))
    counters = Counters(code, 1)
    worker = threading.Thread(target=made[0].repeat, args=(counters.calls, 300_000_000))
    worker.start()
    ticks = 0
    while worker.is_alive() and ticks < 5:
        time.sleep(0.001)
        ticks += 1
    was_alive = worker.is_alive()
    worker.join()
    assert was_alive
