"""Converts the results of a compiled function to Python values."""

from typing import Any

import numpy as np

from tuner.core.device import AbstractHostWatch
from tuner.core.device_program import BufferType, DeviceProgram
from tuner.programs.run.element_types import dtype_of
from tuner.programs.run.marshalling import PassedArgument, view_of
from tuner.runtime.arrays.memref import MemRef

NOT_ALLOCATED = 0xDEADBEEF  # the allocated pointer that finalize-memref-to-llvm gives a global
Returned = tuple["MemRef | np.generic", ...]


def copied(returned: Returned, program: DeviceProgram, watch: AbstractHostWatch | None) -> tuple[Any, ...]:
    """Returns the results of a call as Python values: numbers, and copies of buffers as numpy arrays.

    ``returned`` has numbers and memref descriptors. A ``watch``, of a device that checks host accesses, is
    notified that the host reads the buffers.
    """
    for found, type_ in zip(returned, program.results, strict=True):
        if watch is not None and isinstance(found, MemRef):
            item_bytes = dtype_of(type_.element).itemsize
            watch.host_reads(found.address(item_bytes), found.extent_bytes(item_bytes))
    return tuple(each.copy() if isinstance(each, np.ndarray) else each for each in viewed(returned, program))


def viewed(returned: Returned, program: DeviceProgram) -> tuple[Any, ...]:
    """Returns the results of a call as Python values: numbers, and numpy arrays that view the buffers.

    ``returned`` has numbers and memref descriptors.
    """
    values: list[Any] = []
    for found, type_ in zip(returned, program.results, strict=True):
        if isinstance(found, MemRef) and isinstance(type_, BufferType):
            values.append(view_of(found, type_))
        else:
            values.append(found)
    return tuple(values)


def allocated_for_results(returned: Returned, passed: tuple[PassedArgument, ...]) -> set[int]:
    """Returns the addresses of the result buffers that a call allocated and that its caller frees.

    Results that are arguments of the call (``passed``) or constants of the program are left out.
    """
    mine = {each.host.ctypes.data for each in passed if each.host is not None}
    found = {each.allocated for each in returned if isinstance(each, MemRef)}
    return found - mine - {NOT_ALLOCATED}


def notify_after_call(
    passed: tuple[PassedArgument, ...], program: DeviceProgram, watch: AbstractHostWatch | None
) -> None:
    """Notifies a device that checks host accesses that the caller continues after a call of the program.

    The caller may read the arguments that the program writes, and overwrite the other arguments. ``watch``
    None: does nothing.
    """
    for each, is_written in zip(passed, program.written, strict=True):
        if watch is not None and each.host is not None and each.host.nbytes:
            note = watch.host_reads if is_written else watch.host_writes
            note(each.host.ctypes.data, each.host.nbytes)
