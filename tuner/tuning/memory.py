"""Checks that a problem fits this machine before anything is allocated."""

from tuner.errors import UsageError
from tuner.machine import Machine
from tuner.problem import Problem
from tuner.reference import reference_bytes

GIB = 2**30


def require_memory(problem: Problem, machine: Machine) -> None:
    """Raises UsageError when the arrays of the problem and its reference are larger than the memory."""
    needed = reference_bytes(problem)
    if needed <= machine.memory_bytes or machine.memory_bytes == 0:  # 0: unknown, of a recorded one
        return
    raise UsageError(
        f"shape {problem.shape} {problem.dtype}: its arrays and their float64 reference need "
        f"{needed / GIB:.1f} GiB, available {machine.memory_bytes / GIB:.1f} GiB"
    )
