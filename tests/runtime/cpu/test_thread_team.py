"""Teams of threads: every call is made, once a round, and joined."""

import contextlib
import ctypes
import faulthandler
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.forked import in_child
from tests.texts import text_beside
from tests.tuning.fakes import present
from tuner.core.errors import UsageError
from tuner.runtime.cpu import thread_team
from tuner.runtime.cpu.jit import JittedModule, PackedArguments, loop_text
from tuner.runtime.cpu.object_files import LoadedObject
from tuner.runtime.cpu.team_threads import ProgramTeam, checked_threads
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.cpu.compiler import write_object

pytestmark = pytest.mark.mlir
HANG_S = 300.0  # a lost wake-up would hang for ever: end with a traceback instead

# count: adds one to a plain counter of its own. copy_next: writes one more than what another's counter holds.
CODE = text_beside(__file__, "CODE")
COPY_NUMBER = text_beside(__file__, "COPY_NUMBER")
COUNT_PROGRAM = text_beside(__file__, "COUNT_PROGRAM")


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    faulthandler.dump_traceback_later(HANG_S, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def code() -> JittedModule:
    return JittedModule(CODE, ("count", "copy_next"))


class Counters:
    """A counter for each thread, 128 bytes from the next: no cache line is shared."""

    def __init__(self, size: int) -> None:
        self._memory = (ctypes.c_int64 * (16 * size))()
        self.addresses = tuple(ctypes.addressof(self._memory) + 128 * at for at in range(size))

    @property
    def values(self) -> list[int]:
        return list(self._memory[::16])


class CountedCalls(Counters):
    def __init__(self, code: JittedModule, size: int) -> None:
        super().__init__(size)
        self._arguments = [PackedArguments(address) for address in self.addresses]
        self.calls = tuple((code.addresses["count"], each.address) for each in self._arguments)


Make = Callable[[int], tuple[ThreadTeam, CountedCalls]]


@pytest.fixture
def make(code: JittedModule) -> Iterator[Make]:
    """Gives what makes a team that is closed after the test, and a call for each member that counts."""
    with ExitStack() as closing:
        yield lambda size: (
            closing.enter_context(contextlib.closing(ThreadTeam(size))),
            CountedCalls(code, size),
        )


@pytest.fixture
def processors() -> set[int]:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("this process may use one processor only")
    return allowed


def member_processors(team: ThreadTeam | ProgramTeam) -> list[set[int]]:
    return [os.sched_getaffinity(thread.native_id or 0) for thread in team.members.threads]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("size", [1, 2, 3, 2 * (os.cpu_count() or 1) + 3])
def test_every_member_is_called_once_a_round(make: Make, size: int) -> None:
    team, counters = make(size)
    team.repeat(counters.calls, 500)
    for _ in range(50):
        team.repeat(counters.calls, 1)
    team.repeat(counters.calls, 0)
    assert counters.values == [550] * size


def test_a_round_begins_when_the_last_has_ended(code: JittedModule, make: Make) -> None:
    """Two counters chase one another: each call reads the other's and writes one more.

    With every round joined, the larger grows by one or two a round; a call that ran on would lose steps.
    """
    team, _ = make(2)
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
def test_members_that_doze_are_woken(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that comes in the very moment of dozing off is where a wake-up could be lost."""
    for limit in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        monkeypatch.setattr(thread_team, "SPIN_LIMIT", limit)
        team, counters = make(2)
        team.repeat(counters.calls, 20_000)
        for _ in range(500):
            team.repeat(counters.calls, 1)
        assert counters.values == [20_500] * 2
        team.close()


def test_members_asleep_for_long_are_woken_and_use_no_processor(make: Make) -> None:
    team, counters = make(3)
    team.repeat(counters.calls, 1)
    clocks = [time.pthread_getcpuclockid(present(thread.ident)) for thread in team.members.threads]
    give_up = time.monotonic() + 120
    used_s = math.inf
    while used_s > 0.0 and time.monotonic() < give_up:  # they spin for 2 ms, longer on a loaded machine
        before_s = sum(map(time.clock_gettime, clocks))
        time.sleep(0.02)
        used_s = sum(map(time.clock_gettime, clocks)) - before_s
    assert used_s == 0.0
    team.repeat(counters.calls, 1)
    assert counters.values == [2] * 3


def test_fewer_calls_leave_the_others_alone_and_other_numbers_are_refused(make: Make) -> None:
    team, counters = make(4)
    team.repeat(counters.calls[:2], 10)
    team.repeat(counters.calls[:1], 10)
    team.repeat(counters.calls, 10)
    assert counters.values == [30, 20, 10, 10]
    calls = make(3)[1].calls
    with pytest.raises(ValueError, match=r"marks: found shape \(3, 2\), allowed \(a power of two, 2\)"):
        make(1)[0].watch(calls[:1], 1, np.zeros((3, 2), np.uint64))
    for count in (0, 3):
        with pytest.raises(ValueError, match=rf"^team of 2: found {count} calls$"):
            make(2)[0].repeat(calls[:count], 1)


def test_watched_rounds_find_a_changed_input_and_a_nan_and_restore_it(make: Make) -> None:
    """A call that copies the marked number on writes it; one that counts leaves it unwritten."""
    team, counters = make(1)
    numbers = np.array([1.5, 2.5], np.float32)
    ends = [numbers.ctypes.data + 4 * at - back for at, back in ((1, 1), (2, 2))]
    marks = np.array([ends], np.uint64)
    assert team.watch(counters.calls, 7, marks) == 7
    assert counters.values == [7]
    assert numbers[0] == 1.5
    assert np.isnan(numbers[1])
    copy = JittedModule(COPY_NUMBER, ("copy_number",))
    argument = PackedArguments(numbers.ctypes.data)
    assert team.watch(((copy.addresses["copy_number"], argument.address),), 7, marks) == 0
    assert numbers.tolist() == [1.5, -1.5]


def test_two_teams_work_side_by_side(make: Make) -> None:
    (one, counted), (other, also_counted) = make(3), make(3)

    def work(team: ThreadTeam, counters: CountedCalls) -> None:
        for _ in range(100):
            team.repeat(counters.calls, 5)

    with ThreadPoolExecutor(2) as pool:
        [*pool.map(work, (one, other), (counted, also_counted))]
    assert counted.values == also_counted.values == [500] * 3


@pytest.mark.parametrize(("rounds", "nap_s"), [(10, 0.0), (10, 0.05), (0, 0.0)])
def test_closing_ends_threads_busy_asleep_or_unused(code: JittedModule, rounds: int, nap_s: float) -> None:
    team, counters = ThreadTeam(4), CountedCalls(code, 4)
    threads = tuple(team.members.threads)
    if rounds:
        team.repeat(counters.calls, rounds)
        time.sleep(nap_s)
    assert [thread.is_alive() for thread in threads] == [True] * 3
    team.close()
    assert [thread.is_alive() for thread in threads] == [False] * 3
    team.close()


def test_pinned_members_stay_on_their_processors(make: Make, processors: set[int]) -> None:
    team, counters = make(2)
    team.pin((min(processors), max(processors)))
    assert os.sched_getaffinity(0) == {min(processors)}
    assert member_processors(team) == [{max(processors)}]
    team.repeat(counters.calls, 10)
    assert counters.values == [10, 10]


@pytest.mark.slow
def test_the_interpreter_runs_on_while_a_team_works(make: Make) -> None:
    team, counters = make(1)
    worker = threading.Thread(target=team.repeat, args=(counters.calls, 300_000_000))
    worker.start()
    ticks = 0
    while worker.is_alive() and ticks < 5:
        time.sleep(0.001)
        ticks += 1
    was_alive = worker.is_alive()
    worker.join()
    assert was_alive


# The team that programs share: numbers of threads that are allowed, threads that grow, a fork.


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedObject:
    file: Path = tmp_path_factory.mktemp("team") / "code.o"
    text = loop_text("thread_team")
    write_object(text.rstrip().removesuffix("}") + COUNT_PROGRAM + "}", file, entry="count")
    return LoadedObject(file.read_bytes())


def team_of(loaded: LoadedObject) -> ProgramTeam:
    return ProgramTeam(loaded, "team_member", "team_repeat")


def test_callers_with_more_and_fewer_threads_share_one_team(loaded: LoadedObject) -> None:
    team, count = team_of(loaded), loaded.addresses["count"]
    two, three = Counters(2), Counters(3)
    for _ in range(200):
        team.run(count, two.addresses)
        team.run(count, three.addresses)
        team.run(count, three.addresses)
    assert (two.values, three.values) == ([200] * 2, [400] * 3)
    assert len(team.members.threads) == 2


def test_a_forked_process_has_threads_of_its_own(loaded: LoadedObject) -> None:
    team, count = team_of(loaded), loaded.addresses["count"]
    counters = Counters(2)
    team.run(count, counters.addresses)
    with team.lock:  # as if another thread ran a program

        def run() -> bool:
            with team.lock:
                team.run(count, counters.addresses)
            return counters.values == [2, 2]

        assert in_child(run)
    team.run(count, counters.addresses)
    assert counters.values == [2, 2]


def test_threads_leave_the_callers_processor_if_unpinned(loaded: LoadedObject, processors: set[int]) -> None:
    team, counters = team_of(loaded), Counters(3)
    team.require(3)
    for own in sorted(processors):
        os.sched_setaffinity(0, {own})
        team.run(loaded.addresses["count"], counters.addresses)
        assert member_processors(team) == [processors - {own}] * 2
    other, counters = team_of(loaded), Counters(2)  # which may use one processor only
    other.run(loaded.addresses["count"], counters.addresses)
    assert member_processors(other) == [{own}]
    team, counters = team_of(loaded), Counters(2)
    own = min(processors)
    team.require(2)
    team.members.pin((own,))
    os.sched_setaffinity(0, {own})
    team.run(loaded.addresses["count"], counters.addresses)
    assert member_processors(team) == [{own}]


def test_the_size_of_stacks_of_other_threads_stays_as_it_was(loaded: LoadedObject) -> None:
    before, counters = threading.stack_size(), Counters(2)
    team_of(loaded).run(loaded.addresses["count"], counters.addresses)
    assert (threading.stack_size(), counters.values) == (before, [1, 1])


@pytest.mark.parametrize("threads", [0, -1, 257, True, "2", 2.0, None])
def test_other_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(UsageError, match=rf"threads: found {threads!r}, allowed 1 to 256$"):
        checked_threads(threads)
    assert checked_threads(256) == 256
