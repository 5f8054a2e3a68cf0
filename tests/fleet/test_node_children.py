"""Whoever gives an order to a node's children hears what became of it, whatever goes wrong there."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.fleet.values import work
from tests.tuning.fakes import FAKE
from tuner.core.errors import TunerError
from tuner.core.problem import Matmul
from tuner.fleet.node_children import GIB, KEPT, MeasurementWorkers, NodeChildren, WakePipe
from tuner.fleet.work import EVALUATE, FleetWork
from tuner.runtime.workers.child_process import sleep_until_news
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.targets.interface import RunnerChildren

WITHIN_S = 30.0


def no_children(*_: Any) -> Any:
    raise ValueError("odd")


def no_file_left(*_: Any) -> None:
    raise OSError("too many open files")


@pytest.mark.parametrize("stage", ["compile", EVALUATE])
def test_an_error_reaches_who_gave_the_order_and_the_next_one_is_taken(stage: str) -> None:
    with contextlib.closing(NodeChildren(replace(FAKE.outcomes, children=no_children), slots=1)) as children:
        for number in range(2):
            order = children.submit(work("run", number, stage), (b"",))
            with pytest.raises(ValueError, match="odd"):
                order.done.result(WITHIN_S)


def test_orders_are_refused_once_the_thread_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.fleet.node_children.sleep_until_news", no_file_left)
    with contextlib.closing(NodeChildren(replace(FAKE.outcomes, children=no_children), slots=1)) as children:
        for thread in threading.enumerate():
            if thread.name == "children":
                thread.join(WITHIN_S)
        for number in range(2):
            order = children.submit(work("run", number, EVALUATE), (b"",))
            with pytest.raises(TunerError, match="children: OSError: too many open files"):
                order.done.result(WITHIN_S)


# The processes that a node keeps for measuring, with fakes in real child processes.

BOTH = Factory("tests.fakes:FakeTarget")


CHILDREN = RunnerChildren(BOTH, BOTH, Limits(), device="fake")


@pytest.fixture
def workers() -> Iterator[MeasurementWorkers]:
    kept = MeasurementWorkers(lambda: None, contextlib.nullcontext, lambda _device: contextlib.nullcontext)
    yield kept
    kept.kill_all()


def on(m: int) -> FleetWork:
    """Returns work on a problem of its own."""
    return work("run", stage=EVALUATE, problem=Matmul(m, 8, 8))


def filled(workers: MeasurementWorkers) -> list[int]:
    """Lets as many problems as are kept have a worker; returns the process ids."""
    return [pid(workers, m) for m in range(1, KEPT + 1)]


def pid(workers: MeasurementWorkers, m: int, children: RunnerChildren = CHILDREN) -> int:
    (child,) = workers.of(on(m), lambda: children).children
    return child.pid


@pytest.mark.slow
def test_a_problem_keeps_its_process(workers: MeasurementWorkers) -> None:
    first = filled(workers)
    assert len(set(first)) == KEPT
    assert filled(workers) == first


def test_one_problem_more_takes_over_the_process_that_was_idle_for_longest(
    workers: MeasurementWorkers,
) -> None:
    first = filled(workers)
    assert pid(workers, 1) == first[0]  # now the second one is idle for longest
    assert pid(workers, 9) == first[1]
    assert pid(workers, 2) == first[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        replace(CHILDREN, device="another"),
        replace(CHILDREN, environment=(("OMP_NUM_THREADS", "1"),)),
        replace(CHILDREN, evaluator=Factory("tests.fakes:UntimedTarget")),
        replace(CHILDREN, limits=Limits(memory_bytes=Limits().memory_bytes + 2 * GIB)),
    ],
)
def test_a_process_of_another_kind_or_with_less_memory_is_replaced(
    workers: MeasurementWorkers, changed: RunnerChildren
) -> None:
    first = filled(workers)
    assert pid(workers, 9, changed) not in first


def test_a_problem_of_a_little_more_memory_takes_over_a_process(workers: MeasurementWorkers) -> None:
    small = replace(CHILDREN, limits=Limits(memory_bytes=8 * GIB + 1))
    first = [pid(workers, m, small) for m in range(1, KEPT + 1)]
    larger = replace(CHILDREN, limits=Limits(memory_bytes=9 * GIB))
    assert pid(workers, 9, larger) == first[0]


def test_a_killed_worker_is_followed_by_a_new_process(workers: MeasurementWorkers) -> None:
    first = pid(workers, 1)
    workers.kill(on(1))
    workers.kill(on(2))  # there is none
    assert pid(workers, 1) != first


LONG_S = 240.0


@pytest.fixture
def pipe() -> Iterator[WakePipe]:
    made = WakePipe()
    yield made
    made.close()


def slept_s(pipe: WakePipe, limit_s: float) -> float:
    began_s = time.monotonic()
    sleep_until_news([pipe], limit_s)
    return time.monotonic() - began_s


def test_a_ring_from_another_thread_ends_the_sleep(pipe: WakePipe) -> None:
    threading.Timer(0.05, pipe.ring).start()
    assert slept_s(pipe, LONG_S) < LONG_S / 2


def test_a_ring_before_the_sleep_is_not_lost(pipe: WakePipe) -> None:
    pipe.clear()
    for _ in range(3):
        pipe.ring()
    assert slept_s(pipe, LONG_S) < LONG_S / 2


def test_rings_that_were_cleared_end_no_sleep(pipe: WakePipe) -> None:
    for _ in range(3):
        pipe.ring()
    pipe.clear()
    assert slept_s(pipe, 0.05) >= 0.04
