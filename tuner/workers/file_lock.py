"""The lock of a file, which a forked process does not keep.

A lock belongs to all copies of a descriptor: a process that is forked while another thread has one would hold
it as long as it lives, and wait for itself.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator


@contextlib.contextmanager
def file_lock(descriptor: int) -> Iterator[None]:
    """Context manager: owns an open file, and releases its lock and closes it at the end.

    A forked process closes its copy of the file at once, without a release.
    """
    token = object()
    FILES[token] = descriptor
    try:
        yield
    finally:
        if FILES.pop(token, None) is not None:  # else this process was forked since, and has closed its copy
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process forked outside of Python has a copy, too
            os.close(descriptor)


def _close_copies() -> None:
    for descriptor in FILES.values():
        os.close(descriptor)
    FILES.clear()


# process-wide on purpose: what os.fork() copies is all of the process
FILES: dict[object, int] = {}
os.register_at_fork(after_in_child=_close_copies)
