"""Addresses of the C math library's functions, by the names with which compiled code calls them."""

import ctypes
import re
from ctypes.util import find_library

from tuner.programs.lower.on_host.libm_names import MATH_PREFIX

DECLARED = re.compile(rf"llvm\.func @{MATH_PREFIX}(\w+)\(")


def math_symbols(llvm_text: str) -> dict[str, int]:
    """Returns the addresses of C functions that host code declares as ``math_NAME``; keys are ``math_NAME``.

    ``llvm_text`` is the host code in LLVM dialect after ``with_bundled_math``, which adds the prefix.
    Functions that neither the C math library nor a library that it needs has are left out.
    """
    names = sorted(set(DECLARED.findall(llvm_text)))
    path = find_library("m") if names else None  # find_library starts a process
    if path is None:
        return {}
    library = ctypes.CDLL(path)
    found = {name: getattr(library, name, None) for name in names}
    return {
        MATH_PREFIX + name: ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in found.items()
        if function is not None
    }
