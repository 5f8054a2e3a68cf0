"""Holds BLAS, oneDNN and PyTorch to the processor that TUNER_CPU names, in this process and its children."""

import os
import sys

from tuner.targets.cpu.baseline_libraries import limited_environment


def limit_libraries(threads: int = 1) -> bool:
    """Sets environment variables of this process; returns whether one of them changed.

    Libraries that are loaded already do not read them again. Settings of BLAS that the user made are removed.
    """
    wanted = dict(limited_environment(threads))
    changed = {name: value for name, value in wanted.items() if os.environ.get(name) != value}
    for name, value in changed.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    return bool(changed)


def restart_limited(threads: int = 1) -> None:
    """Starts this program again with ``limit_libraries`` done, if it was not: before libraries are loaded."""
    if limit_libraries(threads):
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the same command
