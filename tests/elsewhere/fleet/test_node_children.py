"""Whoever gives an order to a node's children hears what became of it, whatever goes wrong there."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.elsewhere.fleet.values import node, work
from tests.tuning.fakes import FAKE, changed
from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.errors import TunerError, UsageError
from tuner.core.matmul import Matmul
from tuner.elsewhere.fleet import noise_check
from tuner.elsewhere.fleet.node_children import GIB, KEPT, MeasurementWorkers, NodeChildren, WakePipe
from tuner.elsewhere.fleet.status import DeviceStatus, FleetStatus
from tuner.elsewhere.fleet.tables import FleetNode, SeenNode
from tuner.elsewhere.fleet.work import EVALUATE, FleetWork
from tuner.runtime.cpu.host import processors
from tuner.runtime.workers.child_process import sleep_until_news
from tuner.runtime.workers.limits import Limits
from tuner.runtime.workers.processes import state_of
from tuner.runtime.workers.protocol import Factory
from tuner.targets.target import RunnerChildren

WITHIN_S = 30.0
LONG_S = 240.0


def no_children(*_: Any) -> Any:
    raise ValueError("odd")


def node_children() -> NodeChildren:
    return NodeChildren(changed(FAKE, children=no_children), slots=1)


def no_file_left(*_: Any) -> None:
    raise OSError("too many open files")


def test_an_error_reaches_who_gave_the_order_which_is_refused_once_the_thread_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stage in ("compile", EVALUATE):
        with contextlib.closing(node_children()) as children:
            for number in range(2):
                with pytest.raises(ValueError, match="odd"):
                    children.submit(work("run", number, stage), (b"",)).done.result(WITHIN_S)
    monkeypatch.setattr("tuner.elsewhere.fleet.node_children.sleep_until_news", no_file_left)
    with contextlib.closing(node_children()) as children:
        for thread in threading.enumerate():
            if thread.name == "children":
                thread.join(WITHIN_S)
        for number in range(2):
            with pytest.raises(TunerError, match="children: OSError: too many open files"):
                children.submit(work("run", number, EVALUATE), (b"",)).done.result(WITHIN_S)


# The processes that a node keeps for measuring, with fakes in real child processes.

BOTH = Factory("tests.fakes:FakeTarget")
CHILDREN = RunnerChildren(BOTH, BOTH, Limits(), device="fake")


@pytest.fixture
def workers() -> Iterator[MeasurementWorkers]:
    kept = MeasurementWorkers(lambda: None, contextlib.nullcontext, lambda _device: contextlib.nullcontext)
    yield kept
    kept.kill_all()


def on(m: int) -> FleetWork:
    return work("run", stage=EVALUATE, problem=Matmul(m, 8, 8))


def filled(workers: MeasurementWorkers) -> list[int]:
    """Lets as many problems as are kept have a worker; returns the process ids."""
    return [pid(workers, m) for m in range(1, KEPT + 1)]


def pid(workers: MeasurementWorkers, m: int, children: RunnerChildren = CHILDREN) -> int:
    (child,) = workers.of(on(m), lambda: children).children
    return child.pid


def test_a_problem_keeps_its_process_and_one_more_takes_the_idlest(workers: MeasurementWorkers) -> None:
    first = filled(workers)
    assert (len(set(first)), filled(workers)) == (KEPT, first)
    assert pid(workers, 1) == first[0]  # now the second one is idle for longest
    assert (pid(workers, 9), pid(workers, 2)) == (first[1], first[2])


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
    first = filled(workers)  # before the other one
    assert pid(workers, 9, changed) not in first


def test_a_problem_of_a_little_more_memory_or_after_a_killed_worker_has_a_process(
    workers: MeasurementWorkers,
) -> None:
    small = replace(CHILDREN, limits=Limits(memory_bytes=8 * GIB + 1))
    first = [pid(workers, m, small) for m in range(1, KEPT + 1)]
    assert pid(workers, 9, replace(CHILDREN, limits=Limits(memory_bytes=9 * GIB))) == first[0]
    one = pid(workers, 1)
    workers.kill(on(1))
    workers.kill(on(2))  # there is none
    assert pid(workers, 1) != one


@pytest.fixture
def pipe() -> Iterator[WakePipe]:
    made = WakePipe()
    yield made
    made.close()


def slept_s(pipe: WakePipe, limit_s: float) -> float:
    began_s = time.monotonic()
    sleep_until_news([pipe], limit_s)
    return time.monotonic() - began_s


def test_a_ring_before_the_sleep_or_from_another_thread_ends_it_unless_it_was_cleared(pipe: WakePipe) -> None:
    for _ in range(3):
        pipe.ring()
    assert slept_s(pipe, LONG_S) < LONG_S / 2
    pipe.clear()
    assert slept_s(pipe, 0.05) >= 0.04
    threading.Timer(0.05, pipe.ring).start()
    assert slept_s(pipe, LONG_S) < LONG_S / 2


# A check of what a node disturbs.


@pytest.fixture
def process() -> Iterator[int]:
    sleeping = [sys.executable, "-c", "print(flush=True); input()", "fleet", "worker"]
    with subprocess.Popen(sleeping, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()  # it has its own words, no longer ours
        yield started.pid
        started.kill()


def fleet_status(*nodes: FleetNode, busy: bool = False, silent_s: float = 1.0) -> FleetStatus:
    seen = tuple(SeenNode(each, 60.0, silent_s, drains=False) for each in nodes)
    doing = work("run") if busy else None
    devices = tuple(DeviceStatus(each.device, "fake", each.name, 1.0, doing) for each in nodes)
    return FleetStatus(30.0, seen, devices, (), ())


def test_quiet_and_loud_are_what_was_shown() -> None:
    for interval, noise, is_quiet, exceeds_limit in (
        ((-0.001, 0.002), 0.001, True, False),
        ((-0.001, 0.01), 0.001, False, False),
        ((0.01, 0.02), 0.001, False, True),
        ((0.01, 0.02), 0.03, False, False),  # two timings without it differ by more,
    ):
        check = noise_check.NoiseCheck("a", 20, PairedSlowdown(sum(interval) / 2, interval, noise))
        assert (check.is_quiet, check.exceeds_limit) == (is_quiet, exceeds_limit)


def test_a_node_is_checked_and_what_cannot_be_checked_or_ends_meanwhile_is_reported(process: int) -> None:
    asked = node("a", process=process)
    assert noise_check.nodes_to_check(fleet_status(asked), "here") == (asked,)
    before = os.sched_getaffinity(0)
    check = noise_check.check_noise(asked, 3, 30.0, np.random.default_rng(0), slice_s=0.01)
    assert (check.node, check.rounds) == ("a", 3)
    assert check.longer.interval[0] <= check.longer.interval[1]
    assert state_of(process) != "T"  # it is not left stopped
    assert os.sched_getaffinity(0) == before
    ours = fleet_status(node("a", process=os.getpid()))
    for status, host, message in (
        (fleet_status(asked), "there", "no node measures on there; nodes measure on here"),
        (fleet_status(asked, silent_s=31.0), "here", "no node measures on here; nodes measure on none"),
        (fleet_status(asked, busy=True), "here", "check: found work on here fake"),
        (ours, "here", f"check: process {os.getpid()} of node a is not on this machine"),
    ):
        with pytest.raises(UsageError, match=message):
            noise_check.nodes_to_check(status, host)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with pytest.raises(TunerError, match=rf"^check: the node's process {gone.pid} ended during the check$"):
        noise_check.check_noise(node("a", process=gone.pid), 1, 30.0, np.random.default_rng(0), slice_s=0.001)


def test_work_of_this_process_is_reported_and_what_was_before_is_not() -> None:
    meter = noise_check.QueueMeter()
    until_s = time.thread_time() + 0.1
    while time.thread_time() < until_s:
        pass
    began_s = time.monotonic()
    assert meter.load().cpu_share > 0.0
    for _ in range(20):
        time.sleep(0.005)
    assert meter.load().wakeups_per_s * (time.monotonic() - began_s) >= 20


def test_a_thread_leaves_the_processor_that_is_timed_to_others() -> None:
    found: list[set[int]] = []

    def moved() -> None:
        noise_check.keep_off_timed_processors()
        found.append(os.sched_getaffinity(0))

    before = os.sched_getaffinity(0)
    thread = threading.Thread(target=moved)
    thread.start()
    thread.join()
    assert found == [before - set(processors(1)) or before]
    assert os.sched_getaffinity(0) == before  # of the thread that started it
