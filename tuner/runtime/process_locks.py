"""Locks for threads that are free in a forked process, whoever holds them in this one; work between forks.

os.fork() copies one thread. What other threads hold at that moment would be held for ever in the new process.
Locks of other libraries cannot be made free, so their code is called between forks (``between_forks``).
"""

import os
import threading
import weakref
from typing import Any


def thread_lock() -> threading.Lock:
    """Returns a ``threading.Lock`` that is free in a forked process."""
    return free_in_forks(threading.Lock())  # type: ignore[no-any-return]


def reentrant_lock() -> Any:
    """Returns a ``threading.RLock`` that is free in a forked process."""
    return free_in_forks(threading.RLock())


def free_in_forks(lock: Any) -> Any:
    """Returns a lock of ``threading``, which is free in a forked process from now on."""
    LOCKS.add(lock)
    return lock


def between_forks() -> Any:
    """Returns this thread's context manager: an os.fork() of another thread waits until it is left.

    OpenBLAS needs it: while a thread is in ``np.matmul``, a fork may never end, in this process or in the new
    one.
    """
    return _own.entered


class _Own(threading.local):
    """What a thread holds while it may not be forked."""

    def __init__(self) -> None:
        self.entered = threading.RLock()
        with _entering:
            _entered.add(self.entered)


def _begin_fork() -> None:
    _entering.acquire()
    _taken.append(list(_entered))
    for each in _taken[-1]:
        each.acquire()


def _end_fork() -> None:
    """Is called in both processes: the thread that has forked is the owner in the new one, too."""
    for each in _taken.pop():
        each.release()
    _entering.release()


def _renew() -> None:
    for lock in list(LOCKS):
        lock._at_fork_reinit()  # noqa: SLF001 - as threading itself renews its locks


# process-wide on purpose: what os.fork() copies is all of the process
LOCKS: "weakref.WeakSet[Any]" = weakref.WeakSet()
_entered: "weakref.WeakSet[Any]" = weakref.WeakSet()  # by threads, each its own
_entering = threading.RLock()
_taken: list[list[Any]] = []  # by the thread that forks
_own = _Own()
os.register_at_fork(after_in_child=_renew)
os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_end_fork)
