"""A kernel's machine code in memory (``LoadedKernel``), and its calls on operands: one per thread."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from tuner.core.packings import Packings
from tuner.payload.reference import Array
from tuner.runtime.cpu.cold_caches import RotatedCalls
from tuner.runtime.cpu.jit import JittedModule, PackedArguments
from tuner.runtime.cpu.memory import address_of
from tuner.runtime.cpu.thread_team import ThreadTeam
from tuner.targets.arrays import KernelArrays
from tuner.targets.cpu.timing_checks import PartitionCalls


@dataclass(frozen=True)
class ThreadPart:
    """One thread's part of a kernel: a compiled function, which takes the addresses of the operands."""

    function: int  # its address
    offsets: tuple[int, ...] = ()  # bytes from the beginning of each operand to the thread's part; (): 0
    share: tuple[int, ...] = ()  # arguments after the operands: the thread's index, the number of threads

    def starts(self, addresses: Sequence[int]) -> Sequence[int]:
        """Returns the address at which the thread's part begins in each operand.

        ``addresses``: those at which the operands begin.
        """
        if not self.offsets:
            return addresses
        return [address + offset for address, offset in zip(addresses, self.offsets, strict=True)]


@dataclass(frozen=True, eq=False)
class LoadedKernel:
    """JIT-compiled machine code of an artifact, with what each of its threads runs."""

    code: JittedModule
    parts: tuple[ThreadPart, ...]
    packings: Packings = ()  # of a fusion: how it reads each input

    def calls_on(self, arrays: KernelArrays) -> PartitionCalls:
        """Returns the calls, one per thread, that run the kernel once on ``arrays``.

        Run repeatedly, they use the arrays' copies of the weights in turn.
        """
        return self.calls(*arrays.copies(self.packings))

    def calls(self, *copies: tuple[Array, ...]) -> PartitionCalls:
        """Returns the calls, one per thread, that run the kernel once.

        ``copies``: sets of operands, of which each call uses the next, cyclically. A set is in the order of
        the kernel's arguments: inputs, then outputs.
        """
        addresses = [[address_of(array) for array in operands] for operands in copies]
        calls, keeps = self.calls_at(*addresses)
        return PartitionCalls(calls, copies[0], (copies, keeps, self.code))

    def calls_at(self, *copies: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], list[object]]:
        """Returns (function, argument) addresses per thread, for operands at addresses, and their memory.

        ``copies``: as of ``calls``, addresses in place of arrays. The second result owns the memory that the
        calls read: keep it while they may run.
        """
        calls = []
        keeps: list[object] = []
        for part in self.parts:
            arguments = tuple(PackedArguments(*part.starts(at), *part.share) for at in copies)
            call = (part.function, arguments[0].address)
            if len(copies) > 1:
                rotated = RotatedCalls(part.function, arguments)
                keeps.append(rotated)
                call = rotated.call
            calls.append(call)
            keeps.append(arguments)
        return tuple(calls), keeps


@final
class AddressCall:
    """A loaded kernel as a function of the addresses of its operands, without checks.

    Several threads may call it; where the kernel itself has several, a lock serialises calls.
    """

    def __init__(self, kernel: LoadedKernel) -> None:
        self._kernel = kernel  # owns the machine code
        self._first = kernel.parts[0]
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._first.function)
        self._free: list[PackedArguments] = []  # of a kernel of one thread, that no call uses now
        self.team = ThreadTeam(len(kernel.parts)) if len(kernel.parts) > 1 else None

    def __call__(self, *addresses: int) -> None:
        """Runs the kernel on operands in the order of its arguments; other Python threads run meanwhile."""
        if self.team is not None:
            calls, keeps = self._kernel.calls_at(addresses)
            with self.team.lock:
                self.team.repeat(calls, 1)
            del keeps
            return
        try:
            arguments = self._free.pop()
        except IndexError:
            arguments = PackedArguments(*addresses)
        arguments.values[: len(addresses)] = [*self._first.starts(addresses)]
        self._function(arguments.address)
        self._free.append(arguments)
