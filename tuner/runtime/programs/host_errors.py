"""Errors of compiled host code as Python errors: accesses of device memory, and failing assertions.

Functions called by compiled code cannot raise: a ``KeptError`` stores the first error for the caller.
"""

import ctypes
import itertools
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tuner.core.device import DEVICE_ADDRESS_BITS, DEVICE_ADDRESS_TAG, AbstractHostWatch
from tuner.core.errors import CandidateError, DeviceError, Stage
from tuner.mlir.programs.host_code import MATH_PREFIX
from tuner.runtime.programs.host_program import failed_assertion

# Turns failing assertions of compiled host code into errors of the call, instead of ending the process.
#
# Upstream lowers ``cf.assert`` to calls of ``puts`` with the text and of ``abort``. Code of the host alone
# returns in place of calling ``abort`` (``leave_at_failed_assertions``).
#
# Where an assertion is in a function that is not inlined, and in host code of a simulated device, ``abort``
# is called, which must not return. Such code runs in a separate thread: if an assertion fails, that thread
# waits forever, and the caller gets the error. So there may be few such failures.

# names in the compiled code
ABORT = f"{MATH_PREFIX}abort"
PUTS = f"{MATH_PREFIX}puts"

# Failures after which a program whose assertions keep a thread takes no more calls; a thread has a stack of
# 8 MiB of address space
THREADS_LIMIT = 100
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
# where the check is inserted: the module's end is harder to find, since data of constants follow in braces
MODULE = re.compile(r"module\b.*\{$")
VALUE = r"(%[\w#]+)"
PLAIN = re.compile(rf"llvm\.(?:load (?:volatile )?|store (?:volatile )?%[\w#]+, ){VALUE}")
COPY = re.compile(rf'"llvm\.intr\.mem(?:cpy|move)"\({VALUE}, {VALUE}, {VALUE}\)')
FILL = re.compile(rf'"llvm\.intr\.memset"\({VALUE}, %[\w#]+, {VALUE}\)')


def addresses_of(functions: Mapping[str, Any]) -> dict[str, int]:
    """Returns the address of each C function of ``ctypes``, by its name."""
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in functions.items()}


def has_assertions(llvm_text: str) -> bool:
    """Returns whether host code, text in LLVM dialect, contains lowered assertions (``cf.assert``)."""
    return f"@{PUTS}(" in llvm_text


class HostAssertions:
    """The C functions ``puts`` and ``abort`` that a failing assertion of host code calls.

    Their addresses are valid as long as this object.
    """

    def __init__(self, *, aborts: bool, limit: int = THREADS_LIMIT) -> None:
        """``aborts``: failing assertions may call ``abort``; ``limit``: of aborts; then calls are refused."""
        self._aborts = aborts
        self._limit = limit
        self._kept_threads = 0
        self._said: list[str] = []
        self._is_over = threading.Event()
        self._puts = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(self._note)
        self._abort = ctypes.CFUNCTYPE(None)(self._fail)

    def addresses(self) -> dict[str, int]:
        """Returns the address of each function by the name that the host code calls."""
        return addresses_of({PUTS: self._puts, ABORT: self._abort})

    def call(self, code: Callable[[], None]) -> None:
        """Runs ``code`` and raises its exception; raises CandidateError(RUN) for an assertion that fails.

        Code that may call ``abort`` runs in a new thread, because that thread must never return from
        ``abort``. After ``limit`` such failures, each further call is an error.
        """
        self._said = []
        if self._aborts:
            self._call_in_thread(code)
        else:
            code()
        if self._said:
            raise failed_assertion(self._said[0])

    def _call_in_thread(self, code: Callable[[], None]) -> None:
        if self._kept_threads >= self._limit:
            raise CandidateError(
                Stage.RUN,
                f"found {self._kept_threads} failed assertions of the program, allowed {self._limit}, "
                "since each keeps a thread: compile the program again",
            )
        self._is_over = threading.Event()
        raised: list[BaseException] = []

        def run() -> None:
            try:
                code()
            except BaseException as error:  # noqa: BLE001 - raised to the caller
                raised.append(error)
            finally:
                self._is_over.set()

        threading.Thread(target=run, daemon=True).start()
        self._is_over.wait()
        if raised:
            raise raised[0]

    def _note(self, text: bytes) -> int:
        self._said.append(text.decode(errors="replace"))
        return 0

    def _fail(self) -> None:
        self._said = self._said or ["an assertion of the program fails"]
        self._kept_threads += 1
        self._is_over.set()
        threading.Event().wait()


class HostFaults:
    """The C function that host code with address checks (``with_checks``) calls for device addresses.

    It passes an error to ``note``, and returns scratch memory for the access. ``watch`` knows which addresses
    are device memory. The function's address is valid as long as this object.
    """

    def __init__(self, watch: AbstractHostWatch, note: Callable[[DeviceError], None]) -> None:
        self._watch = watch
        self._note = note
        self._scratch: Any = ctypes.create_string_buffer(LOAD_BYTES)
        type_ = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._function = type_(self._fault)

    def addresses(self) -> dict[str, int]:
        """Returns the address of the function by the name that the host code calls."""
        return addresses_of({FAULT: self._function})

    def is_fault(self, address: int, what: str) -> bool:
        """Returns whether an address is device memory; if so, notes an error about ``what``, the access."""
        memory = self._watch.device_memory_at(address)
        if memory is not None:
            where = f"{memory}, which is device memory"
            allowed = "host memory, gpu.alloc host_shared, or a copy"
            self._note(DeviceError(f"host: found {what} of {where}, allowed {allowed}"))
        return memory is not None

    def _fault(self, address: int, size_bytes: int) -> int:
        if not self.is_fault(address, "a load or store"):  # tagged, but in no allocation
            self._note(DeviceError(f"host: found an access of {address:#x}, allowed host memory"))
        if size_bytes > len(self._scratch):
            self._scratch = ctypes.create_string_buffer(size_bytes)
        return ctypes.addressof(self._scratch)  # with which the code continues


def with_checks(llvm: str) -> str:
    """Returns host code (LLVM dialect) whose loads, stores, copies and fills are checked for device memory.

    The simulated GPU shares one address space with the host. Where the address is device memory, the inserted
    call stores an error (``HostFaults``), which the caller raises later. It returns scratch memory, and the
    access uses that. On a GPU the access would be a segmentation fault. Atomic updates and masked
    accesses are not checked.
        %5 = llvm.load %4 : !llvm.ptr -> f32
      becomes
        %checked0 = llvm.call @tuner_on_host(%4, %bytes) : (!llvm.ptr, i64) -> !llvm.ptr
        %5 = llvm.load %checked0 : !llvm.ptr -> f32
    """
    numbers = itertools.count()
    lines: list[str] = []
    for line in llvm.splitlines():
        lines += _checked(line, numbers)
    start = next((index for index, line in enumerate(lines) if MODULE.match(line)), None)
    inside = lines if start is None else [*lines[: start + 1], CHECK, *lines[start + 1 :]]
    return "\n".join(inside)


def _checked(line: str, numbers: "itertools.count[int]") -> list[str]:
    match = PLAIN.search(line) or FILL.search(line) or COPY.search(line)
    if match is None:
        return [line]
    count = 2 if match.re is COPY else 1
    names = [f"%checked{next(numbers)}" for _ in range(count)]
    if match.re is PLAIN:
        size = f"%bytes{names[0].removeprefix('%checked')}"
    else:
        size = match.groups()[-1]
    if match.re is PLAIN:
        before = [f"{size} = llvm.mlir.constant({LOAD_BYTES} : i64) : i64"]
    else:
        before = []
    for number, name in enumerate(names, start=1):
        call = f"llvm.call @tuner_on_host({match[number]}, {size}) : (!llvm.ptr, i64) -> !llvm.ptr"
        before.append(f"{name} = {call}")
    # the last first, so that positions of the others stay
    for number, name in reversed(list(enumerate(names, start=1))):
        line = line[: match.start(number)] + name + line[match.end(number) :]
    return [*before, line]


class KeptError:
    """Keeps the first error of C functions that compiled code calls, until ``raise_it`` raises it."""

    def __init__(self) -> None:
        self._error: BaseException | None = None

    @property
    def is_there(self) -> bool:
        """Returns whether an error is kept, which ``raise_it`` has not raised yet."""
        return self._error is not None

    def keep(self, error: BaseException) -> None:
        """Stores an error to be raised later, unless an earlier error is stored."""
        self._error = self._error or error

    def raise_it(self) -> None:
        """Raises the kept error and forgets it; does nothing where no error is kept."""
        error = self._error
        self._error = None
        if error is not None:
            raise error
