"""Alternate stacks of threads, on which the SIGSEGV handler runs when a thread's own stack overflows.

Only child processes that run kernels install such a handler (``stack_overflow.py``); in other processes
nothing is done. https://man7.org/linux/man-pages/man2/sigaltstack.2.html
"""

import ctypes
import threading
from typing import Any

ALTERNATE_BYTES = 64 << 10  # the kernel stores AVX-512's and AMX's registers there: 11 KiB
HEADER_BYTES = 16
MIB = 1 << 20
UNLIMITED_BYTES = 1 << 40  # of a stack

_libc: Any = ctypes.CDLL(None, use_errno=True)
_stacks: list[ctypes.Array[ctypes.c_char]] = []  # alternate stacks, used as long as their threads
_is_watched = False  # whether this process has a handler that reports stack overflows


class _AlternateStack(ctypes.Structure):
    """The C struct ``stack_t`` (sigaltstack(2)): start, flags and bytes of an alternate stack."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("bytes", ctypes.c_size_t))


def watch_process() -> None:
    """Gives an alternate stack to the calling thread, and to threads of teams that start afterwards.

    Raises OSError if the system refuses it.
    """
    global _is_watched
    _is_watched = True
    watch_thread()


def watch_thread() -> None:
    """Gives the calling thread an alternate stack, if ``watch_process`` was called in this process.

    Raises OSError if the system refuses it.
    """
    if not _is_watched:
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
    """Returns the lowest address of the calling thread's stack, and its bytes; (0, 0) if unknown."""
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
