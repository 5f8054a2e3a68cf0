"""The processes that a node keeps for measuring, with fakes in real child processes."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.fleet.values import work
from tuner.core.problem import Matmul
from tuner.fleet.node_children import GIB, KEPT, MeasurementWorkers
from tuner.fleet.work import EVALUATE, FleetWork
from tuner.runtime.workers.protocol import Factory, Limits
from tuner.targets.interface import RunnerChildren

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
