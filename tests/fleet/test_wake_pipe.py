import threading
import time
from collections.abc import Iterator

import pytest

from tuner.fleet.node_children import WakePipe
from tuner.runtime.workers.child_process import sleep_until_news

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
