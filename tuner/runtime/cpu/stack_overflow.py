"""Tells a stack overflow of compiled code apart from other faults, in child processes that run kernels.

Both are a SIGSEGV. Python code cannot run then, so the handler is compiled, stack_overflow.mlir. It needs a
stack of its own: an alternate stack per thread, at whose start stands where the thread's stack ends.
https://man7.org/linux/man-pages/man2/sigaltstack.2.html
"""

import ctypes
import signal
import threading
from typing import Any

from tuner.runtime.cpu.jit import CompiledFunction, PackedArguments, shipped_module

ALTERNATE_BYTES = 64 << 10  # the kernel stores AVX-512's and AMX's registers there: 11 KiB
HEADER_BYTES = 16
# Flags of sigaction(2): the handler takes three arguments, runs on the alternate stack, and only once. The
# faulting instruction then faults again, which ends the process by SIGSEGV.
SA_SIGINFO, SA_ONSTACK, SA_RESETHAND = 0x4, 0x08000000, 0x80000000
MIB = 1 << 20
UNLIMITED_BYTES = 1 << 40  # of a stack

_libc: Any = ctypes.CDLL(None, use_errno=True)
_stacks: list[ctypes.Array[ctypes.c_char]] = []  # alternate stacks, used as long as their threads
_is_installed = False


class _Action(ctypes.Structure):
    """``struct sigaction`` of glibc on x86-64."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class _AlternateStack(ctypes.Structure):
    """``stack_t``."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("bytes", ctypes.c_size_t))


def report_stack_overflows() -> None:
    """Makes this process print one line to stderr before a stack overflow of the calling thread ends it.

    Threads of teams that start afterwards report theirs too. Replaces the process's handler of SIGSEGV: for
    child processes only.
    """
    global _is_installed
    code = shipped_module("stack_overflow", "fault_handler")
    returned = PackedArguments()
    CompiledFunction(code.addresses["fault_handler"])(returned)
    flags = ctypes.c_int32(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND - (1 << 32)).value
    action = _Action(handler=returned.result, flags=flags)
    if _libc.sigaction(int(signal.SIGSEGV), ctypes.byref(action), None) != 0:
        raise OSError(ctypes.get_errno(), "sigaction(SIGSEGV)")
    _is_installed = True
    watch_thread()


def watch_thread() -> None:
    """Gives the calling thread an alternate stack, if this process reports stack overflows."""
    if not _is_installed:
        return
    lowest, size = _own_stack()
    message = _message(size)
    memory = ctypes.create_string_buffer(ALTERNATE_BYTES)
    start = ctypes.addressof(memory)
    ctypes.c_uint64.from_address(start).value = lowest
    ctypes.c_uint64.from_address(start + 8).value = len(message)
    ctypes.memmove(start + HEADER_BYTES, message, len(message))
    stack = _AlternateStack(start=start, flags=0, bytes=ALTERNATE_BYTES)
    if _libc.sigaltstack(ctypes.byref(stack), None) != 0:
        raise OSError(ctypes.get_errno(), "sigaltstack")
    _stacks.append(memory)


def _own_stack() -> tuple[int, int]:
    """Returns the lowest address of the calling thread's stack, and its bytes."""
    attributes = (ctypes.c_uint64 * 8)()  # pthread_attr_t: 56 bytes
    lowest = ctypes.c_void_p()
    size = ctypes.c_size_t()
    if _libc.pthread_getattr_np(ctypes.c_ulong(threading.get_ident()), attributes) != 0:
        return 0, 0
    _libc.pthread_attr_getstack(attributes, ctypes.byref(lowest), ctypes.byref(size))
    _libc.pthread_attr_destroy(attributes)
    return lowest.value or 0, size.value


def _message(size: int) -> bytes:
    limit = f"the {size / MIB:.2g} MiB" if 0 < size < UNLIMITED_BYTES else "all"
    return f"stack overflow: the kernel needs more than {limit} of its thread's stack\n".encode()
