"""Locks of files: a process that is forked inside of one has no part in it."""

import fcntl
import os
from pathlib import Path

import pytest

from tests.forked import in_child
from tuner.runtime.workers.processes import file_lock


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def test_a_forked_process_keeps_no_file_locked(tmp_path: Path) -> None:
    """The lock is its parent's alone: it ends with the parent, and the process itself can wait for it."""
    path, are_ready, go_on = tmp_path / "lock", os.pipe(), os.pipe()
    descriptor = opened(path)
    with file_lock(descriptor):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        child = os.fork()
        if not child:
            os.write(are_ready[1], b".")
            os.read(go_on[0], 1)
            os._exit(0)
        os.read(are_ready[0], 1)
        other = opened(path)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)  # as the end of this process would, without a release
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(go_on[1], b".")
        os.waitpid(child, 0)
        os.dup2(other, descriptor)  # for the end of the block
    os.close(other)


def test_a_lock_ends_with_its_block_though_another_process_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = opened(path)
    copy = os.dup(descriptor)  # as in a process that was not forked by Python
    with file_lock(descriptor):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    other = opened(path)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(copy)
    os.close(other)


def test_a_process_forked_inside_a_block_leaves_it() -> None:
    def leave() -> bool:
        with file_lock(os.dup(2)):
            return True

    with file_lock(os.dup(2)):
        assert in_child(leave)
