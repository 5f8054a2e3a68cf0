"""Makes host code that accesses device memory report an error, on a device that checks host accesses.

Where device and host share one address space, as with the simulated GPU, compiled host code could load from
and store to device memory. Therefore each load and store is preceded by a check against the address range of
device memory. The error is stored and raised by the caller, and the code continues on scratch memory; on a
GPU it would have ended with a segmentation fault.

    %5 = llvm.load %4 : !llvm.ptr -> f32
  becomes
    %checked0 = llvm.call @tuner_on_host(%4, %bytes) : (!llvm.ptr, i64) -> !llvm.ptr
    %5 = llvm.load %checked0 : !llvm.ptr -> f32
"""

import ctypes
import itertools
import re
from collections.abc import Callable
from typing import Any

from tuner.core.device import DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG, AbstractHostWatch, DeviceError

FAULT = "tuner_host_fault"
LOAD_BYTES = 4096  # upper limit of a single load or store; intrinsics pass their size
CHECK = f"""
  llvm.func @{FAULT}(!llvm.ptr, i64) -> !llvm.ptr
  llvm.func internal @tuner_on_host(%pointer: !llvm.ptr, %bytes: i64) -> !llvm.ptr {{
    %bits = llvm.mlir.constant({DEVICE_ADDRESS_BITS} : i64) : i64
    %tag = llvm.mlir.constant({DEVICE_ADDRESS_TAG} : i64) : i64
    %address = llvm.ptrtoint %pointer : !llvm.ptr to i64
    %high = llvm.lshr %address, %bits : i64
    %is_device = llvm.icmp "eq" %high, %tag : i64
    llvm.cond_br %is_device, ^fault, ^fine
  ^fault:
    %instead = llvm.call @{FAULT}(%pointer, %bytes) : (!llvm.ptr, i64) -> !llvm.ptr
    llvm.return %instead : !llvm.ptr
  ^fine:
    llvm.return %pointer : !llvm.ptr
  }}
"""
MODULE = re.compile(
    r"module\b.*\{$"
)  # the end is harder to find: data of constants follow the module, in braces
VALUE = r"(%[\w#]+)"
PLAIN = re.compile(rf"llvm\.(?:load (?:volatile )?|store (?:volatile )?%[\w#]+, ){VALUE}")
COPY = re.compile(rf'"llvm\.intr\.mem(?:cpy|move)"\({VALUE}, {VALUE}, {VALUE}\)')
FILL = re.compile(rf'"llvm\.intr\.memset"\({VALUE}, %[\w#]+, {VALUE}\)')


class HostFaults:
    """The C function that checked host code calls when it accesses device memory; it stores an error.

    The function's address is valid as long as this object.
    """

    def __init__(self, watch: AbstractHostWatch, note: Callable[[DeviceError], None]) -> None:
        """Takes the watch that finds device memory at an address, and a function that stores each error."""
        self._watch, self._note = watch, note
        self._scratch: Any = ctypes.create_string_buffer(LOAD_BYTES)
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._function = kind(self._fault)

    def addresses(self) -> dict[str, int]:
        """Returns the address of the C function, by the name that checked code calls."""
        return {FAULT: ctypes.cast(self._function, ctypes.c_void_p).value or 0}

    def is_fault(self, address: int, what: str) -> bool:
        """Returns whether an address is in device memory, and if so stores an error.

        ``what`` describes the access in the error: "a print".
        """
        found = self._watch.device_memory_at(address)
        if found is not None:
            where = f"{found}, which is device memory"
            allowed = "host memory, gpu.alloc host_shared, or a copy"
            self._note(DeviceError(f"host: found {what} of {where}, allowed {allowed}"))
        return found is not None

    def _fault(self, address: int, size_bytes: int) -> int:
        """Returns the scratch memory on which the code continues.

        Stores an error also for a tagged address that is not in any device allocation.
        """
        if not self.is_fault(address, "a load or store"):
            self._note(DeviceError(f"host: found an access of {address:#x}, allowed host memory"))
        if size_bytes > len(self._scratch):
            self._scratch = ctypes.create_string_buffer(size_bytes)
        return ctypes.addressof(self._scratch)


def with_checks(llvm: str) -> str:
    """Returns host code (LLVM dialect) whose loads, stores, copies and fills are checked for device memory.

    A call before each access checks its addresses. For an address of device memory the call stores an error
    (``HostFaults``) and returns scratch memory, which the access then uses. Atomic read-modify-writes, and
    masked loads and stores of vectors, are not checked.
    """
    numbers = itertools.count()
    lines = [checked for line in llvm.splitlines() for checked in _checked(line, numbers)]
    start = next((number for number, line in enumerate(lines) if MODULE.match(line)), None)
    inside = lines if start is None else [*lines[: start + 1], CHECK, *lines[start + 1 :]]
    return "\n".join(inside)


def _checked(line: str, numbers: "itertools.count[int]") -> list[str]:
    """Returns the checks of a line's addresses, followed by the line."""
    found = PLAIN.search(line) or FILL.search(line) or COPY.search(line)
    if found is None:
        return [line]
    count = 2 if found.re is COPY else 1
    names = [f"%checked{next(numbers)}" for _ in range(count)]
    size = f"%bytes{names[0].removeprefix('%checked')}" if found.re is PLAIN else found.groups()[-1]
    before = [f"{size} = llvm.mlir.constant({LOAD_BYTES} : i64) : i64"] if found.re is PLAIN else []
    for number, name in enumerate(names, start=1):
        call = f"llvm.call @tuner_on_host({found[number]}, {size}) : (!llvm.ptr, i64) -> !llvm.ptr"
        before.append(f"{name} = {call}")
    for number, name in reversed(list(enumerate(names, start=1))):
        line = line[: found.start(number)] + name + line[found.end(number) :]
    return [*before, line]
