"""The team that programs share: numbers of threads that are allowed, threads that grow, a fork."""

import ctypes
import os
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.runtime.cpu.object_files import LoadedObject
from tuner.runtime.cpu.team_threads import ProgramTeam, checked_threads
from tuner.targets.cpu.compiler import write_object

COUNT = text_beside(__file__, "COUNT")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedObject:
    file: Path = tmp_path_factory.mktemp("team") / "code.o"
    text = (files("tuner.runtime.cpu") / "thread_team.mlir").read_text()
    write_object(text.rstrip().removesuffix("}") + COUNT + "}", file, entry="count")
    return LoadedObject(file.read_bytes())


class Counters:
    """A counter for each thread, 128 bytes from the next."""

    def __init__(self, size: int) -> None:
        self._memory = (ctypes.c_int64 * (16 * size))()
        self.arguments = tuple(ctypes.addressof(self._memory) + 128 * at for at in range(size))

    @property
    def values(self) -> list[int]:
        return list(self._memory[::16])


def team_of(loaded: LoadedObject) -> ProgramTeam:
    return ProgramTeam(loaded, loaded.addresses["team_member"], loaded.addresses["team_repeat"])


@pytest.mark.mlir
def test_callers_with_more_and_fewer_threads_share_one_team(loaded: LoadedObject) -> None:
    team, count = team_of(loaded), loaded.addresses["count"]
    two, three = Counters(2), Counters(3)
    for _ in range(200):
        team.run(count, two.arguments)
        team.run(count, three.arguments)
        team.run(count, three.arguments)
    assert (two.values, three.values) == ([200] * 2, [400] * 3)
    assert len(team.members.threads) == 2


@pytest.mark.mlir
def test_a_forked_process_has_threads_of_its_own(loaded: LoadedObject) -> None:
    team, count = team_of(loaded), loaded.addresses["count"]
    counters = Counters(2)
    team.run(count, counters.arguments)
    with team.lock:  # as if another thread ran a program
        child = os.fork()
        if not child:
            with team.lock:
                team.run(count, counters.arguments)
            os._exit(0 if counters.values == [2, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
    team.run(count, counters.arguments)
    assert counters.values == [2, 2]


@pytest.fixture
def processors() -> Iterator[set[int]]:
    """Gives the processors of this thread, which has them again after the test."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("this process may use one processor only")
    yield allowed
    os.sched_setaffinity(0, allowed)


def member_processors(team: ProgramTeam) -> list[set[int]]:
    return [os.sched_getaffinity(thread.native_id or 0) for thread in team.members.threads]


@pytest.mark.mlir
def test_threads_keep_off_the_processor_of_the_caller_if_there_is_another(
    loaded: LoadedObject, processors: set[int]
) -> None:
    team, counters = team_of(loaded), Counters(3)
    team.require(3)
    for own in sorted(processors):
        os.sched_setaffinity(0, {own})
        team.run(loaded.addresses["count"], counters.arguments)
        assert member_processors(team) == [processors - {own}] * 2
    other, counters = team_of(loaded), Counters(2)  # which may use one processor only
    other.run(loaded.addresses["count"], counters.arguments)
    assert member_processors(other) == [{own}]


@pytest.mark.mlir
def test_pinned_threads_stay_where_they_are(loaded: LoadedObject, processors: set[int]) -> None:
    team, counters = team_of(loaded), Counters(2)
    own = min(processors)
    team.require(2)
    team.members.pin((own,))
    os.sched_setaffinity(0, {own})
    team.run(loaded.addresses["count"], counters.arguments)
    assert member_processors(team) == [{own}]


@pytest.mark.mlir
def test_the_size_of_stacks_of_other_threads_stays_as_it_was(loaded: LoadedObject) -> None:
    before, counters = threading.stack_size(), Counters(2)
    team_of(loaded).run(loaded.addresses["count"], counters.arguments)
    assert (threading.stack_size(), counters.values) == (before, [1, 1])


@pytest.mark.parametrize("threads", [0, -1, 257, True, "2", 2.0, None])
def test_other_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(UsageError, match=rf"threads: found {threads!r}, allowed 1 to 256$"):
        checked_threads(threads)
    assert checked_threads(256) == 256
