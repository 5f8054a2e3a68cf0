import os
import threading
import time

from tuner.fleet.noise_check import QueueMeter, keep_off_timed_processors
from tuner.runtime.cpu.host import processors


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
