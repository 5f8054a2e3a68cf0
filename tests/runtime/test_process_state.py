"""Locks that other threads hold when a process is forked: free in the new one; the package has no others."""

import importlib
import os
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.forked import in_child, in_child_amid_calls
from tests.source_files import MODULES
from tuner.models.library.dispatch.first_use import numpy_product
from tuner.runtime import process_state
from tuner.runtime.process_state import between_forks, reentrant_lock, thread_lock

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_locks_of_other_threads_and_of_this_one_are_free_in_a_forked_process() -> None:
    lock, reentrant = thread_lock(), reentrant_lock()
    assert in_child_amid_calls(lambda: lock.acquire(timeout=5) and reentrant.acquire(timeout=5))
    lock = thread_lock()
    with lock:
        assert in_child(lambda: lock.acquire(timeout=5))
        assert lock.locked()


@pytest.fixture(scope="module")
def begun() -> threading.Event:
    event = threading.Event()
    os.register_at_fork(before=event.set)
    return event


def test_a_fork_waits_for_what_other_threads_do_between_forks(begun: threading.Event) -> None:
    is_entered, is_right, order = threading.Event(), [], []

    def work() -> None:
        with between_forks():
            is_entered.set()
            begun.wait()
            with between_forks():  # enters again, though a fork waits
                order.append("left")

    worker = threading.Thread(target=work)
    forker = threading.Thread(target=lambda: is_right.append(in_child(lambda: order == ["left"])))
    begun.clear()
    worker.start()
    is_entered.wait()
    forker.start()
    for thread in (worker, forker):
        thread.join()
    assert is_right == [True]
    assert in_child(lambda: between_forks().acquire(timeout=5))  # it is free in both processes


def test_numpy_multiplies_between_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    is_held = []

    def product(*_: object) -> object:
        other = threading.Thread(target=lambda: is_held.append(not entered.acquire(blocking=False)))
        other.start()
        other.join()
        return np.eye(2)

    entered = between_forks()
    monkeypatch.setattr(np, "matmul", product)
    numpy_product(np.eye(2), np.eye(2), None)
    assert is_held == [True]


def test_a_fork_waits_for_an_import_of_another_thread(
    begun: threading.Event, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The module's text waits until the fork has begun; the new process can import it as well."""
    text = "import sys; entered, begun = sys.late; entered.set(); begun.wait(); done = True"
    (tmp_path / "imported_late.py").write_text(text)
    is_entered = threading.Event()
    monkeypatch.setattr(sys, "late", (is_entered, begun), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(process_state, "IMPORTED_WHEN_NEEDED", {"imported_late"})
    importer = threading.Thread(target=importlib.import_module, args=("imported_late",))
    begun.clear()
    importer.start()
    is_entered.wait()
    assert in_child(lambda: bool(importlib.import_module("imported_late").done))
    importer.join()


LOCKS = re.compile(r"(threading|multiprocessing)\.(R?Lock|Condition|\w*Semaphore|Barrier)\(")


def test_all_locks_of_the_package_are_such() -> None:
    assert LOCKS.search("self._lock = threading.Lock()")
    texts = {name: path.read_text() for name, path in MODULES.items() if name != "runtime.process_state"}
    assert [name for name, text in texts.items() if LOCKS.search(text)] == []
