"""A forked process whose parent has other threads, which hold locks at that moment."""

import os
import signal
import threading
from collections.abc import Callable

from tuner.runtime import process_state

HANG_S = 60  # after which a forked process that waits is ended: its status is then the signal's


def in_child(work: Callable[[], bool]) -> bool:
    """Calls ``work`` in a forked process; returns what it returned, False where it raised or did not end."""
    child = os.fork()
    if not child:
        is_right = False
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(HANG_S)
            is_right = work()
        finally:
            os._exit(0 if is_right else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_child_amid_calls(work: Callable[[], bool]) -> bool:
    """Calls ``work`` in a process that is forked while another thread holds all locks of this process."""
    are_held, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        held = list(process_state.LOCKS)
        for lock in held:
            lock.acquire()
        are_held.set()
        is_over.wait()
        for lock in held:
            lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    are_held.wait()
    try:
        return in_child(work)
    finally:
        is_over.set()
        holder.join()
