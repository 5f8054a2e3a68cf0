"""Locks that other threads hold when a process is forked: free in the new one; the package has no others."""

import re

import pytest

from tests.forked import in_child, in_child_amid_calls
from tests.source_files import MODULES
from tuner.runtime.process_locks import reentrant_lock, thread_lock

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def test_locks_of_other_threads_are_free_in_a_forked_process() -> None:
    lock, reentrant = thread_lock(), reentrant_lock()
    assert in_child_amid_calls(lambda: lock.acquire(timeout=5) and reentrant.acquire(timeout=5))


def test_a_lock_of_this_thread_is_free_in_a_forked_process_and_held_here() -> None:
    lock = thread_lock()
    with lock:
        assert in_child(lambda: lock.acquire(timeout=5))
        assert lock.locked()


LOCKS = re.compile(r"(threading|multiprocessing)\.(R?Lock|Condition|\w*Semaphore|Barrier)\(")


def test_all_locks_of_the_package_are_such() -> None:
    assert LOCKS.search("self._lock = threading.Lock()")
    texts = {name: path.read_text() for name, path in MODULES.items() if name != "runtime.process_locks"}
    assert [name for name, text in texts.items() if LOCKS.search(text)] == []
