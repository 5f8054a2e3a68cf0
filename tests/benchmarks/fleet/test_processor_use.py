import os
import subprocess
import sys
import time

import pytest

from benchmarks.fleet import processor_use
from benchmarks.fleet.processor_use import children_of, family_s, parent_of, processor_s, wakes


def test_a_child_is_found_with_what_it_takes() -> None:
    command = [sys.executable, "-c", "sum(range(10**6)); print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in children_of(os.getpid())
        assert parent_of(child.pid) == os.getpid()
        assert processor_s(child.pid) > 0
        child.kill()


def test_a_child_that_ends_while_it_is_looked_at_counts_as_its_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr(processor_use, "children_of", lambda _process: (gone.pid,))
    before_s = processor_s(os.getpid())
    assert before_s <= family_s(os.getpid()) <= processor_s(os.getpid())


def test_sleeping_is_counted_as_waking() -> None:
    before = wakes(os.getpid())
    time.sleep(0.001)
    assert wakes(os.getpid()) > before
