"""Threads: those of a library get processors of their own, those that a kernel starts are seen."""

import contextlib
import os
import threading
import time

import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.runtime.cpu.host import processors
from tuner.targets.cpu.blas import TASKS, pin_working_threads
from tuner.targets.cpu.timing_checks import no_thread_started


def affinities() -> dict[int, frozenset[int]]:
    found = {}
    for task in (int(entry.name) for entry in TASKS.iterdir()):
        with contextlib.suppress(ProcessLookupError):  # a thread that was joined may be on its way out
            found[task] = frozenset(os.sched_getaffinity(task))
    return found


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_the_caller_and_the_busiest_thread_are_pinned_and_no_other() -> None:
    """The caller is a thread of its own here: the affinity of the test's thread must stay."""
    over, before = threading.Event(), affinities()
    pinned: list[int] = []

    def spin() -> None:
        while not over.is_set():
            pass

    def call() -> None:
        pin_working_threads(lambda _: time.sleep(0.001), processors(2))
        pinned.append(threading.get_native_id())

    idle = threading.Thread(target=over.wait)
    busy = threading.Thread(target=spin)
    caller = threading.Thread(target=call)
    idle.start()
    busy.start()
    try:
        caller.start()
        caller.join()
        found = affinities()
    finally:
        over.set()
        idle.join()
        busy.join()
    assert busy.native_id is not None
    assert idle.native_id is not None
    assert found[busy.native_id] == {processors(2)[1]}
    assert found[idle.native_id] == before[threading.get_native_id()]
    still = before.keys() & found.keys()
    assert threading.get_native_id() in still
    assert {task: before[task] for task in still} == {task: found[task] for task in still}


def test_one_processor_pins_the_caller_alone() -> None:
    found: list[frozenset[int]] = []

    def call() -> None:
        pin_working_threads(lambda _: None, processors(1))
        found.append(frozenset(os.sched_getaffinity(0)))

    caller = threading.Thread(target=call)
    caller.start()
    caller.join()
    assert found == [frozenset(processors(1))]


def test_a_thread_that_goes_on_is_seen() -> None:
    done = threading.Event()
    with (
        pytest.raises(CandidateError, match=r"^started 1 threads that go on after it returned$") as caught,
        no_thread_started(),
    ):
        threading.Thread(target=done.wait, daemon=True).start()
    done.set()
    assert caught.value.stage == Stage.RUN


def test_threads_of_before_are_none_of_its_doing() -> None:
    done = threading.Event()
    threading.Thread(target=done.wait, daemon=True).start()
    with no_thread_started():
        pass
    done.set()
