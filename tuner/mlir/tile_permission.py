"""The permission of Linux to use AMX tile registers. Documentation/arch/x86/xstate.rst of the kernel."""

import ctypes
import platform
import re
from functools import cache

from tuner.core.errors import CandidateError, Stage

ARCH_PRCTL = 158  # system call of x86-64
REQUEST_PERMISSION = 0x1023  # ARCH_REQ_XCOMP_PERM
TILE_DATA = 18  # XFEATURE_XTILEDATA
TILES = re.compile(r"\bllvm\.x86_amx\b|\bllvm\.x86\.(?:tile|tdp)")  # types and intrinsics of LLVM dialect
REFUSED = "needs AMX, which the operating system refuses to this process"


@cache
def may_use_tiles() -> bool:
    """Requests the permission for this process and its threads; returns whether it was granted.

    Without it, the first tile instruction ends the process by SIGILL. A container may refuse it. A child
    process has to request it again after exec.
    """
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0)


def request_for(llvm_text: str) -> None:
    """Requests the permission where code uses tiles; called wherever code is loaded to be run.

    ``llvm_text`` is a module in LLVM dialect. Raises CandidateError(LOAD) where the permission is refused.
    """
    if TILES.search(llvm_text) and not may_use_tiles():
        raise CandidateError(Stage.LOAD, REFUSED)
