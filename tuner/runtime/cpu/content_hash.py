"""A hash of what memory contains, 64 bits, at the speed of memory: for contents that may change unseen."""

import ctypes
from collections.abc import Sequence

from tuner.runtime.cpu.jit import CompiledFunction, PackedArguments, shipped_module

ENTRY = "content_hash"


class ContentHash:
    """The hash of several ranges of memory, of their present contents whenever it is asked for."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Takes pairs of an address and a number of bytes; the caller keeps that memory alive."""
        numbers = [number for each in ranges for number in each]
        self._table = (ctypes.c_uint64 * max(len(numbers), 1))(*numbers)
        self._arguments = PackedArguments(ctypes.addressof(self._table), len(ranges))
        self._code = shipped_module(ENTRY, ENTRY)
        self._function = CompiledFunction(self._code.addresses[ENTRY])

    def value(self) -> int:
        self._function(self._arguments)
        return self._arguments.result
