"""Locks for threads that are free in a forked process, whoever holds them in this one.

os.fork() copies one thread. What other threads hold at that moment would be held for ever in the new process.
"""

import os
import threading
import weakref
from typing import Any


def thread_lock() -> threading.Lock:
    """Returns a ``threading.Lock`` that is free in a forked process."""
    return _known(threading.Lock())  # type: ignore[no-any-return]


def reentrant_lock() -> Any:
    """Returns a ``threading.RLock`` that is free in a forked process."""
    return _known(threading.RLock())


def _known(lock: Any) -> Any:
    LOCKS.add(lock)
    return lock


def _renew() -> None:
    for lock in list(LOCKS):
        lock._at_fork_reinit()  # noqa: SLF001 - as threading itself renews its locks


# process-wide on purpose: what os.fork() copies is all of the process
LOCKS: "weakref.WeakSet[Any]" = weakref.WeakSet()
os.register_at_fork(after_in_child=_renew)
