"""Calls of a function whose arguments change from call to call: copies of weights that no cache holds.

The weights of a model come from the last level of cache, or from memory, since all others were read since
the call before. A kernel that is timed in a loop finds them in the second level. With copies that together
are larger than that level, one used after the other, each call finds its copy evicted.
"""

import ctypes
from functools import cache
from importlib.resources import files

from tuner.mlir.jit import JittedModule, PackedArguments

ENTRY = "rotated_call"


class RotatedCalls:
    """A compiled function that calls another one with the next of its arguments, in turn."""

    def __init__(self, function: int, arguments: tuple[PackedArguments, ...]) -> None:
        """Takes the address of a packed wrapper, and its arguments, as many as a power of two."""
        count = len(arguments)
        if not count or count & (count - 1):
            raise ValueError(f"arguments: found {count}, allowed a power of two")
        addresses = [each.address for each in arguments]
        self._state = (ctypes.c_uint64 * (3 + count))(0, count - 1, function, *addresses)
        self._arguments = arguments
        self._state_argument = PackedArguments(ctypes.addressof(self._state))
        self.call = (_compiled().addresses[ENTRY], self._state_argument.address)


@cache
def _compiled() -> JittedModule:
    return JittedModule((files("tuner.runtime.cpu") / "rotated_calls.mlir").read_text(), (ENTRY,))
