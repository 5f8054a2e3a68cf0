"""A compiled host program that calls no device, as a Python function: what programs are compared with."""

from typing import Any, Never

from tuner.device_program import DeviceProgram
from tuner.errors import UsageError
from tuner.runtime.host_code import HostCode
from tuner.runtime.host_heap import HostHeap
from tuner.runtime.host_math import math_symbols
from tuner.runtime.marshalling import CallFrame, Passed, pass_arguments
from tuner.runtime.results import allocated_for_results, copied


class HostFunction:
    """Runs on this processor, in the caller's thread. One call at a time."""

    def __init__(self, program: DeviceProgram) -> None:
        """Compiles. Raises CandidateError(LOAD)."""
        self.program = program
        self._heap = HostHeap(None)
        symbols = self._heap.addresses() | math_symbols(program.llvm)
        self._code = HostCode(program.llvm, program.entry, symbols)

    def __call__(self, *arguments: object, stream: object = None) -> Any:
        """Calls; returns the result, a tuple of several, or None. Raises UsageError for what does not fit."""
        if stream is not None:
            raise UsageError(f"{self.program.entry}: found a stream, allowed none for a program on the host")
        call = self.prepare(*arguments)
        self._code(call.frame.address)
        results = copied(call.frame.results(), self.program, None)
        self._free(call)
        return results[0] if len(results) == 1 else results or None

    def as_graph(self, *_arguments: object) -> Never:
        """Raises UsageError: graphs are of GPUs."""
        raise UsageError(
            f"{self.program.entry}: found a program on the host, allowed one on a GPU for a graph"
        )

    def close(self) -> None:
        """Does nothing: the code goes with this object. Programs on devices have more to give back."""

    @property
    def allocations(self) -> int:
        """Returns how many allocations of the code were not freed."""
        return self._heap.in_use

    def prepare(self, *arguments: object) -> "PreparedCall":
        """Checks arguments and lays them out. Raises UsageError."""
        passed = pass_arguments(self.program, arguments, 0)
        return PreparedCall(passed, CallFrame(passed, (), self.program.results))

    def repeat(self, call: "PreparedCall", times: int) -> None:
        """Calls again and again on the same arguments; results are dropped."""
        for _ in range(times):
            self._code(call.frame.address)
            self._free(call)

    def _free(self, call: "PreparedCall") -> None:
        for address in allocated_for_results(call.frame.results(), call.passed):
            self._heap.free(address)
        self._heap.give_back(self._heap.take_freed())


class PreparedCall:
    """Arguments in place, and the frame that points at them."""

    def __init__(self, passed: tuple[Passed, ...], frame: CallFrame) -> None:
        self.passed = passed
        self.frame = frame
