"""A 64-bit hash of memory, computed as fast as memory is read: shows whether arrays have been changed."""

import ctypes
from collections.abc import Sequence
from itertools import chain

from tuner.runtime.cpu.jit import CompiledFunction, PackedArguments, shipped_module

ENTRY = "content_hash"


class ContentHash:
    """The hash of several ranges of memory; each call of ``value`` hashes their present contents."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Takes pairs of an address and a number of bytes; the caller keeps that memory alive."""
        numbers = list(chain.from_iterable(ranges))
        self._table = (ctypes.c_uint64 * max(len(numbers), 1))(*numbers)
        self._arguments = PackedArguments(ctypes.addressof(self._table), len(ranges))
        self._code = shipped_module(ENTRY, ENTRY)
        self._function = CompiledFunction(self._code.addresses[ENTRY])

    def value(self) -> int:
        """Returns the hash of the present contents, an unsigned 64-bit integer."""
        self._function(self._arguments)
        return self._arguments.result
