"""Host code that touches device memory faults, on a device that checks its host.

Where device and host share one address space for real, as on the simulated GPU, compiled code could load and
store anywhere. So each load and store of the code asks first, by a range of addresses that only device memory
has. A fault is kept for the caller, who raises it, and the code goes on in memory of no meaning: on a GPU it
would have ended with a segmentation fault.

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
LOAD_BYTES = 4096  # that one load or store touches at most, and an intrinsic is given its size
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
)  # its end is harder to find: data of constants come behind it, in braces
VALUE = r"(%[\w#]+)"
PLAIN = re.compile(rf"llvm\.(?:load (?:volatile )?|store (?:volatile )?%[\w#]+, ){VALUE}")
COPY = re.compile(rf'"llvm\.intr\.mem(?:cpy|move)"\({VALUE}, {VALUE}, {VALUE}\)')
FILL = re.compile(rf'"llvm\.intr\.memset"\({VALUE}, %[\w#]+, {VALUE}\)')


class HostFaults:
    """The faults of one program's host code; its function lives as long as this object."""

    def __init__(self, watch: AbstractHostWatch, note: Callable[[DeviceError], None]) -> None:
        """Takes what is told of each fault."""
        self._watch, self._note = watch, note
        self._scratch: Any = ctypes.create_string_buffer(LOAD_BYTES)
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._function = kind(self._fault)

    def addresses(self) -> dict[str, int]:
        """Returns the address of the function that checked code calls, by its name."""
        return {FAULT: ctypes.cast(self._function, ctypes.c_void_p).value or 0}

    def is_fault(self, address: int, what: str) -> bool:
        """Tells whether memory is out of the host's reach, and notes an access of it as a fault."""
        found = self._watch.device_memory_at(address)
        if found is not None:
            where = f"{found}, which is device memory"
            allowed = "host memory, gpu.alloc host_shared, or a copy"
            self._note(DeviceError(f"host: found {what} of {where}, allowed {allowed}"))
        return found is not None

    def _fault(self, address: int, size_bytes: int) -> int:
        """Returns where the code may go on; an address that no device memory has now is a fault too."""
        if not self.is_fault(address, "a load or store"):
            self._note(DeviceError(f"host: found an access of {address:#x}, allowed host memory"))
        if size_bytes > len(self._scratch):
            self._scratch = ctypes.create_string_buffer(size_bytes)
        return ctypes.addressof(self._scratch)


def with_checks(llvm: str) -> str:
    """Returns LLVM dialect in which each load, store, copy and fill of memory asks first."""
    numbers = itertools.count()
    lines = [checked for line in llvm.splitlines() for checked in _checked(line, numbers)]
    start = next((number for number, line in enumerate(lines) if MODULE.match(line)), None)
    inside = lines if start is None else [*lines[: start + 1], CHECK, *lines[start + 1 :]]
    return "\n".join(inside)


def _checked(line: str, numbers: "itertools.count[int]") -> list[str]:
    """Returns a line behind the checks of its addresses."""
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
