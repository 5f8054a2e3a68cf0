"""Tells a stack overflow of compiled code apart from other faults, in child processes that run kernels.

Both raise SIGSEGV. Python code cannot run then, so the handler is compiled (stack_overflow.mlir). It runs on
an alternate stack, one per thread, which begins with the address at which the thread's own stack ends.
"""

import ctypes
import signal
from typing import Any

from tuner.runtime.cpu.alternate_stacks import watch_process
from tuner.runtime.cpu.jit import CompiledFunction, PackedArguments, shipped_module

# Flags of sigaction(2): the handler takes three arguments, runs on the alternate stack, and only once. The
# faulting instruction then faults again, which ends the process by SIGSEGV.
SA_SIGINFO = 0x4
SA_ONSTACK = 0x08000000
SA_RESETHAND = 0x80000000

_libc: Any = ctypes.CDLL(None, use_errno=True)


class _Action(ctypes.Structure):
    """``struct sigaction`` of glibc on x86-64."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def report_stack_overflows() -> None:
    """Makes this process print one line to stderr before a stack overflow ends it.

    Applies to the calling thread and to threads of teams that start afterwards. Replaces the process's
    handler of SIGSEGV: for child processes only. Raises OSError if the system refuses the handler.
    """
    code = shipped_module("stack_overflow", "fault_handler")
    returned = PackedArguments()
    CompiledFunction(code.addresses["fault_handler"])(returned)
    flags = ctypes.c_int32(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND - (1 << 32)).value
    action = _Action(handler=returned.result, flags=flags)
    if _libc.sigaction(int(signal.SIGSEGV), ctypes.byref(action), None) != 0:
        raise OSError(ctypes.get_errno(), "sigaction(SIGSEGV)")
    watch_process()
