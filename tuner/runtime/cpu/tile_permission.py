"""The permission of Linux to use AMX tile registers. Documentation/arch/x86/xstate.rst of the kernel."""

import ctypes
import platform
from functools import cache

ARCH_PRCTL = 158  # system call of x86-64
REQUEST_PERMISSION = 0x1023  # ARCH_REQ_XCOMP_PERM
TILE_DATA = 18  # XFEATURE_XTILEDATA


@cache
def may_use_tiles() -> bool:
    """Requests the permission for this process and its later threads; returns whether it was granted.

    Without it, the first tile instruction ends the process by SIGILL. A container may refuse it. A child
    process has to request it again after exec.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0)
