"""State that belongs to one process: locks that are free after a fork, calls that forks wait for.

os.fork() copies one thread: a lock that another thread holds would stay locked in the new process. Locks of
other libraries cannot be freed: their code, and imports, run under a lock for which os.fork() waits. Loaded
machine code cannot be pickled to another process.
"""

import _frozen_importlib
import ctypes
import os
import threading
import time
import weakref
from typing import Any, ClassVar, Never

IMPORTED_WHEN_NEEDED = frozenset({"tuner", "platformdirs", "ml_dtypes"})
WAIT_LIMIT_S = 30.0  # that a fork waits, longer than any call between forks; then it happens anyway
POLL_S = 0.001
# process-wide on purpose: what os.fork() copies is all of the process
LOCKS: "weakref.WeakSet[Any]" = weakref.WeakSet()
_locks_between_forks: "weakref.WeakSet[Any]" = weakref.WeakSet()  # one of each thread
_entering = threading.RLock()
_held_by_fork: list[list[Any]] = []  # by the thread that forks


def return_free_memory() -> None:
    """Returns memory that was freed, and that the C library keeps, to the operating system.

    Some MB of allocations that weights pass through stay otherwise. Does nothing where glibc is not used.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def thread_lock() -> threading.Lock:
    """Returns a ``threading.Lock`` that is free in a forked process."""
    return free_in_forks(threading.Lock())  # type: ignore[no-any-return]


def reentrant_lock() -> Any:
    """Returns a ``threading.RLock`` that is free in a forked process."""
    return free_in_forks(threading.RLock())


def free_in_forks(lock: Any) -> Any:
    """Registers a lock of ``threading``, so that it is free in forked processes, and returns it."""
    LOCKS.add(lock)
    return lock


def between_forks() -> Any:
    """Returns this thread's lock, to hold around calls of ``np.matmul``, SQLite or LLVM, and imports.

    os.fork() waits for the locks of all threads, at most WAIT_LIMIT_S; threads do not wait for each other.
    Waits while another thread forks, unless this thread holds the lock already.
    """
    lock = _of_thread.lock
    if _held_by_fork and not lock._is_owned():  # noqa: SLF001 - as threading.Condition asks
        with _entering:
            pass
    return lock


class _LockOfThread(threading.local):
    """The lock that a thread holds while the process must not be forked."""

    def __init__(self) -> None:
        self.lock: Any = threading.RLock()
        with _entering:
            _locks_between_forks.add(self.lock)


def _begin_fork() -> None:
    end_s = time.monotonic() + WAIT_LIMIT_S
    _entering.acquire()
    taken: list[Any] = []
    _held_by_fork.append(taken)
    # none is taken again before the fork: ``between_forks`` waits for ``_entering``
    taken += [
        lock for lock in list(_locks_between_forks) if lock.acquire(timeout=max(end_s - time.monotonic(), 0))
    ]
    while _is_importing() and time.monotonic() < end_s:
        time.sleep(POLL_S)


def _is_importing() -> bool:
    """Returns whether another thread imports a module, whose lock a new process would never get."""
    module_locks = getattr(_frozen_importlib, "_module_locks", {})
    locks = [(name, reference()) for name, reference in list(module_locks.items())]
    return any(
        name.partition(".")[0] in IMPORTED_WHEN_NEEDED
        and lock is not None
        and lock.owner not in (None, threading.get_ident())
        for name, lock in locks
    )


def _end_fork() -> None:
    """Releases the locks that were held for a fork; called in both processes, by the thread that forked."""
    for lock in _held_by_fork.pop():
        lock.release()
    _entering.release()


def _free_locks() -> None:
    for lock in list(LOCKS):
        lock._at_fork_reinit()  # noqa: SLF001 - as threading itself renews its locks


_of_thread = _LockOfThread()
os.register_at_fork(after_in_child=_free_locks)
# Before a fork the last hook runs first: that of logging takes a lock that other threads may need to go on.
os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_end_fork)


class LoadedCode:
    """Base class of callables with loaded machine code; pickling or copying one raises TypeError."""

    load_again: ClassVar[str]  # expression that loads the code in another process

    def __reduce__(self) -> Never:
        raise TypeError(
            f"{type(self).__name__}: a loaded kernel cannot be pickled or copied; "
            f"load it in the other process: {self.load_again}"
        )
