"""What a compiled function returns, as Python's values."""

from typing import Any

import numpy as np

from tuner.device import AbstractHostWatch
from tuner.device_program import BufferType, DeviceProgram
from tuner.runtime.elements import dtype_of
from tuner.runtime.marshalling import Passed, view_of
from tuner.runtime.memref import MemRef

NOT_ALLOCATED = 0xDEADBEEF  # what finalize-memref-to-llvm gives out as a global's allocation
Returned = tuple["MemRef | np.generic", ...]


def copied(returned: Returned, program: DeviceProgram, watch: AbstractHostWatch | None) -> tuple[Any, ...]:
    """Returns numbers, and arrays with memory of their own."""
    for found, type_ in zip(returned, program.results, strict=True):
        if watch is not None and isinstance(found, MemRef):
            item_bytes = dtype_of(type_.element).itemsize
            watch.host_reads(found.address(item_bytes), found.extent_bytes(item_bytes))
    return tuple(each.copy() if isinstance(each, np.ndarray) else each for each in viewed(returned, program))


def viewed(returned: Returned, program: DeviceProgram) -> tuple[Any, ...]:
    """Returns numbers, and arrays in the function's memory."""
    values: list[Any] = []
    for found, type_ in zip(returned, program.results, strict=True):
        if isinstance(found, MemRef) and isinstance(type_, BufferType):
            values.append(view_of(found, type_))
        else:
            values.append(found)
    return tuple(values)


def allocated_for_results(returned: Returned, passed: tuple[Passed, ...]) -> set[int]:
    """Returns the allocations that the caller frees, each once: a function may return its arguments."""
    mine = {each.host.ctypes.data for each in passed if each.host is not None}
    found = {each.allocated for each in returned if isinstance(each, MemRef)}
    return found - mine - {NOT_ALLOCATED}


def note_reads(passed: tuple[Passed, ...], program: DeviceProgram, watch: AbstractHostWatch | None) -> None:
    """Tells a checking device that the caller reads what was written, and may overwrite the rest."""
    for each, is_written in zip(passed, program.written, strict=True):
        if watch is not None and each.host is not None and each.host.nbytes:
            note = watch.host_reads if is_written else watch.host_writes
            note(each.host.ctypes.data, each.host.nbytes)
