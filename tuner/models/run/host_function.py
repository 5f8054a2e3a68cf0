"""Programs that were compiled as a whole for this processor, as Python functions.

A ``PreparedHostCall`` repeats one call of a ``HostFunction`` without checks.
"""

import sys
from dataclasses import dataclass
from typing import Any, Never

import numpy as np

from tuner.core.device_programs import DeviceProgram, ResidentBuffer
from tuner.core.errors import UsageError
from tuner.models.run.program_weights import aligned_copy
from tuner.runtime.arrays import ArrayView
from tuner.runtime.process_state import thread_lock
from tuner.runtime.programs import marshalling
from tuner.runtime.programs.devices import device_runtime
from tuner.runtime.programs.host_heap import HostHeap
from tuner.runtime.programs.host_program import AbstractHostProgram
from tuner.runtime.programs.machine_code import HostCode
from tuner.runtime.programs.runner_functions import RunnerFunctions, Write, math_symbols


class HostFunction(AbstractHostProgram):
    """A program that was compiled as a whole, as a Python function on this processor.

    A program with assertions in functions that were not inlined runs in a new thread.
    """

    load_again = "tuner.compile_program(payload)"

    def __init__(
        self,
        program: DeviceProgram,
        write: Write = sys.stdout.write,
        why_no_fusions: str = "",
        object_code: bytes = b"",
    ) -> None:
        """Compiles a program, or loads its ``object_code`` if that is not b"".

        ``write`` receives the text that the program prints. ``why_no_fusions``: why the program is not
        compiled as fusions. Raises CandidateError(LOAD) where the code cannot be compiled or loaded.
        """
        self.program = program
        self.why_no_fusions = why_no_fusions
        self._lock = thread_lock()
        self._heap = HostHeap(None)
        self._runner = RunnerFunctions(write)
        self._kernels = device_runtime().host_kernels(program.interpreted, write)
        called = self._runner.addresses() | self._kernels.addresses()
        symbols = self._heap.addresses() | called | math_symbols(program.llvm)
        self._constants = tuple(map(_constant, program.resident))
        self._code = HostCode(
            program.llvm, program.entry, symbols, catches_assertions=True, object_code=object_code
        )

    def __repr__(self) -> str:
        why = f"; no fusions: {self.why_no_fusions}" if self.why_no_fusions else ""
        return f"HostFunction({self.program.signature}{why})"

    def __call__(self, *arguments: object, stream: object = None) -> Any:
        if stream is not None:
            raise UsageError(f"{self.program.entry}: takes no stream: the program runs on the host")
        call = self.prepare(*arguments)
        with self._lock:
            self._run(call)
            results = marshalling.copied(call.frame.results(), self.program, None)
            self._free(call)
        if len(results) == 1:
            return results[0]
        return results or None

    def as_graph(self, *_arguments: object) -> Never:
        raise UsageError(
            f"{self.program.entry}: the program runs on the host: only a program on a GPU has a graph"
        )

    def close(self) -> None:
        pass  # the code is freed with this object

    @property
    def allocations(self) -> int:
        """Returns how many memory blocks the program has allocated and not freed so far; 0: no leak."""
        return self._heap.in_use

    def prepare(self, *arguments: object) -> "PreparedHostCall":
        passed = (*marshalling.pass_arguments(self.program, arguments, 0), *self._constants)
        return PreparedHostCall(passed, marshalling.CallFrame(passed, (), self.program.results))

    def repeat(self, call: "PreparedHostCall", times: int) -> None:
        with self._lock:
            for _ in range(times):
                self._run(call)
                self._free(call)

    def _run(self, call: "PreparedHostCall") -> None:
        try:
            self._code(call.frame.address)
            self._kernels.raise_error()
        except Exception:  # not an interruption, after which code may run on in another thread
            self._heap.free_all()
            self._heap.give_back(self._heap.take_freed())
            raise

    def _free(self, call: "PreparedHostCall") -> None:
        for address in marshalling.allocated_for_results(call.frame.results(), call.passed):
            self._heap.free(address)
        self._heap.give_back(self._heap.take_freed())


def _constant(buffer: ResidentBuffer) -> marshalling.PassedArgument:
    """Returns a constant as an argument of calls, which keeps its memory alive."""
    content = np.frombuffer(buffer.data, np.uint8)
    if buffer.is_written:  # each function has its own
        content = aligned_copy(content)
    address = content.ctypes.data
    shape = tuple(extent or 0 for extent in buffer.type.shape)
    view = ArrayView(address, (content.size,), None, content.dtype, content, is_read_only=True)
    return marshalling.PassedArgument(marshalling.descriptor_of(address, shape), True, view, is_on_host=True)


@dataclass(frozen=True, eq=False)
class PreparedHostCall:
    """The checked arguments of one call of a ``HostFunction``, laid out in memory for repeated calls."""

    passed: tuple[marshalling.PassedArgument, ...]
    frame: marshalling.CallFrame
