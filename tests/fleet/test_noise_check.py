import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tests.fleet.values import node, work
from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.errors import TunerError, UsageError
from tuner.fleet.noise_check import (
    NoiseCheck,
    QueueMeter,
    check_noise,
    keep_off_timed_processors,
    nodes_to_check,
)
from tuner.fleet.status import DeviceStatus, FleetStatus
from tuner.fleet.tables import FleetNode, SeenNode
from tuner.runtime.cpu.host import processors
from tuner.runtime.workers.processes import state_of


@pytest.fixture
def process() -> Iterator[int]:
    """Gives a process that has a node's words and sleeps."""
    sleeping = [sys.executable, "-c", "print(flush=True); input()", "fleet", "worker"]
    with subprocess.Popen(sleeping, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()  # it has its own words, no longer ours
        yield started.pid
        started.kill()


def status(*nodes: FleetNode, busy: bool = False, silent_s: float = 1.0) -> FleetStatus:
    seen = tuple(SeenNode(each, 60.0, silent_s, drains=False) for each in nodes)
    doing = work("run") if busy else None
    devices = tuple(DeviceStatus(each.device, "fake", each.name, 1.0, doing) for each in nodes)
    return FleetStatus(30.0, seen, devices, (), ())


@pytest.mark.parametrize(
    ("interval", "noise", "is_quiet", "exceeds_limit"),
    [
        ((-0.001, 0.002), 0.001, True, False),
        ((-0.001, 0.01), 0.001, False, False),
        ((0.01, 0.02), 0.001, False, True),
        ((0.01, 0.02), 0.03, False, False),  # two timings without it differ by more
    ],
)
def test_quiet_and_loud_are_what_was_shown(
    interval: tuple[float, float], noise: float, is_quiet: bool, exceeds_limit: bool
) -> None:
    check = NoiseCheck("a", 20, PairedSlowdown(sum(interval) / 2, interval, noise))
    assert (check.is_quiet, check.exceeds_limit) == (is_quiet, exceeds_limit)


def test_a_node_is_checked_and_goes_on(process: int) -> None:
    asked = node("a", process=process)
    assert nodes_to_check(status(asked), "here") == (asked,)
    before = os.sched_getaffinity(0)
    check = check_noise(asked, 3, 30.0, np.random.default_rng(0), slice_s=0.01)
    assert (check.node, check.rounds) == ("a", 3)
    assert check.longer.interval[0] <= check.longer.interval[1]
    assert state_of(process) != "T"  # it is not left stopped
    assert os.sched_getaffinity(0) == before


def test_what_cannot_be_checked_is_refused(process: int) -> None:
    asked = node("a", process=process)
    with pytest.raises(UsageError, match="no node measures on there; nodes measure on here"):
        nodes_to_check(status(asked), "there")
    with pytest.raises(UsageError, match="no node measures on here; nodes measure on none"):
        nodes_to_check(status(asked, silent_s=31.0), "here")
    with pytest.raises(UsageError, match="check: here fake has work"):
        nodes_to_check(status(asked, busy=True), "here")
    with pytest.raises(UsageError, match=rf"check: process {os.getpid()} of node a is not on this machine"):
        nodes_to_check(status(node("a", process=os.getpid())), "here")


def test_a_node_that_ends_meanwhile_is_reported_of() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with pytest.raises(TunerError, match=rf"^check: the node's process {gone.pid} ended during the check$"):
        check_noise(node("a", process=gone.pid), 1, 30.0, np.random.default_rng(0), slice_s=0.001)


def test_work_of_this_process_is_reported_and_what_was_before_is_not() -> None:
    meter = QueueMeter()
    until_s = time.thread_time() + 0.1
    while time.thread_time() < until_s:
        pass
    began_s = time.monotonic()
    assert meter.load().cpu_share > 0.0
    for _ in range(20):
        time.sleep(0.005)
    wakeups_per_s = meter.load().wakeups_per_s
    assert wakeups_per_s * (time.monotonic() - began_s) >= 20


def test_a_thread_leaves_the_processor_that_is_timed_to_others() -> None:
    found: list[set[int]] = []

    def moved() -> None:
        keep_off_timed_processors()
        found.append(os.sched_getaffinity(0))

    before = os.sched_getaffinity(0)
    thread = threading.Thread(target=moved)
    thread.start()
    thread.join()
    assert found == [before - set(processors(1)) or before]
    assert os.sched_getaffinity(0) == before  # of the thread that started it
