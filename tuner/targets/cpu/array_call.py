"""A kernel of one thread, called at the addresses of arrays: for calls of a few microseconds."""

import ctypes
from typing import final

from tuner.payload.reference import Array
from tuner.targets.cpu.evaluator import LoadedKernel

_NO_BYTES = ctypes.c_char * 0


def address_of(array: Array) -> int:
    """Returns the address of an array's first element."""
    try:
        return ctypes.addressof(_NO_BYTES.from_buffer(array.data))
    except (TypeError, ValueError, BufferError):  # read-only, or transposed
        return int(array.ctypes.data)  # three times as long


@final
class AddressCall:
    """A loaded kernel of one thread as a function of the addresses of A, B and C; nothing is checked.

    Threads may call it at once: each call takes arguments of its own, which are kept for the next.
    """

    def __init__(self, kernel: LoadedKernel) -> None:
        """Takes a kernel with one thread partition of three operands."""
        (partition,) = kernel.partitions
        self._kernel = kernel  # owns the machine code
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(kernel.code.addresses[partition.called])
        self._free: list[_Arguments] = []

    def __call__(self, a: int, b: int, c: int) -> None:
        """Computes C = A B for arrays at these addresses. Releases the interpreter lock meanwhile."""
        try:
            arguments = self._free.pop()
        except IndexError:
            arguments = _Arguments()
        arguments.values[0], arguments.values[1], arguments.values[2] = a, b, c
        self._function(arguments.address)
        self._free.append(arguments)


class _Arguments:
    """Three pointers in MLIR's packed calling convention: an array of pointers to values."""

    __slots__ = ("_pointers", "address", "values")

    def __init__(self) -> None:
        self.values = (ctypes.c_uint64 * 4)()  # the fourth is for the result
        first = ctypes.addressof(self.values)
        self._pointers = (ctypes.c_void_p * 4)(*[first + 8 * place for place in range(4)])
        self.address = ctypes.addressof(self._pointers)
