"""Compiled host programs: machine code by the JIT, a check that it compiles, a function that calls it.

``HostCode`` is the code, ``HostFunction`` the callable; a ``PreparedHostCall`` repeats one call without
checks.
"""

import contextlib
import ctypes
import re
import sys
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any, Never

import numpy as np

from tuner.core.device_programs import DeviceProgram, ResidentBuffer
from tuner.core.errors import CandidateError, Stage, UsageError, reason_of
from tuner.core.progress import code_generation
from tuner.mlir.bindings import execution_engine, ir
from tuner.mlir.effects.runner_signatures import C_INTERFACE
from tuner.programs.interpreter.kernels import LaneKernel, LaneLaunch, read_kernels
from tuner.programs.lowering.host import PREFIX, SIZES, UNKNOWN_SIZE
from tuner.programs.lowering.host_code import CALLBACK
from tuner.programs.run import marshalling
from tuner.programs.run.host_errors import (
    ABORT,
    HostAssertions,
    KeptError,
    addresses_of,
    has_assertions,
    with_checks,
)
from tuner.programs.run.host_heap import HostHeap
from tuner.programs.run.host_program import AbstractHostProgram
from tuner.programs.run.mgpu import SIGNATURES
from tuner.programs.run.program_weights import aligned_copy
from tuner.programs.run.runner_functions import RunnerFunctions, Write, math_symbols
from tuner.runtime.arrays import ArrayView, MemRef
from tuner.runtime.cpu.host import require_tiles_for
from tuner.runtime.cpu.jit import module_for_host
from tuner.runtime.cpu.object_files import LoadedObject
from tuner.runtime.process_state import thread_lock

PACKED = "_mlir_"  # begins the names of MLIR's wrappers, void(void **arguments), which the JIT looks up
DECLARED = re.compile(r"^ *llvm\.func [^@\n]*@([\w.$]+)\(.*[^{\n]$", re.MULTILINE)  # a definition ends with {


class HostCode:
    """The machine code of a host function, as a callable.

    The constructors of the code, which load GPU kernels, run at once, unless ``is_run`` is False.
    """

    def __init__(
        self,
        llvm_text: str,  # the program in LLVM dialect
        entry: str,  # the function to call
        symbols: dict[str, int],  # name -> address of each function that the code calls
        *,
        is_run: bool = True,
        catches_assertions: bool = False,  # a failing assertion is an error of the call
        object_code: bytes = b"",  # of the text, without constructors; b"": the text is compiled
    ) -> None:
        """Compiles LLVM dialect with -O2 and runs its constructors; or loads ``object_code``, if not b"".

        ``symbols``: addresses of the C functions that the code calls, by name. ``catches_assertions``: a
        failing assertion becomes an error, not the end of the process. Raises CandidateError(LOAD) where
        compilation fails.
        """
        require_tiles_for(llvm_text)
        is_caught = catches_assertions and has_assertions(llvm_text)
        self._assertions = HostAssertions(aborts=f"@{ABORT}(" in llvm_text) if is_caught else None
        if self._assertions is not None:
            symbols = symbols | self._assertions.addresses()
        name = f"{C_INTERFACE}{entry}"
        if object_code:
            self._engine: Any = LoadedObject(object_code, symbols)
            address = self._engine.addresses.get(f"{PACKED}{name}")
        else:
            with code_generation(llvm_text):
                address = self._jitted(llvm_text, name, symbols, is_run=is_run)
        if not address:
            raise CandidateError(Stage.LOAD, f"function {entry!r} is not there with a C interface")
        self._function: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def _jitted(self, llvm_text: str, name: str, symbols: dict[str, int], *, is_run: bool) -> int:
        try:
            with ir.Context(), ir.Location.unknown():
                module = module_for_host(llvm_text)
                self._engine = execution_engine().ExecutionEngine(module, opt_level=2)
            # before the constructors run: the modules that they load would be null otherwise
            for symbol, address in symbols.items():
                self._engine.raw_register_runtime(symbol, ctypes.c_void_p(address))
            if is_run:
                self._engine.initialize()
            return int(self._engine.raw_lookup(name) or 0)
        except (RuntimeError, ValueError, ir.MLIRError) as error:
            raise CandidateError(Stage.LOAD, reason_of(error)) from error

    def __call__(self, address: int) -> None:
        """Calls the code; ``address``: that of an array of pointers to its arguments.

        Raises CandidateError(RUN) for an assertion that fails.
        """
        if self._assertions is None:
            self._function(address)
        else:
            self._assertions.call(lambda: self._function(address))

    def close(self) -> None:
        """Runs the destructors, which unload the kernels' modules, and frees the code."""
        self._function = None
        with contextlib.suppress(AttributeError):
            del self._engine


_nothing = ctypes.CFUNCTYPE(None)(lambda: None)


def check_host_code(program: DeviceProgram, *, is_checked: bool, object_code: bytes = b"") -> None:
    """Checks that a program's host code compiles, or that its ``object_code`` loads, without running it.

    ``is_checked``: the code is checked with its checks for accesses of device memory (``with_checks``).
    ``object_code`` b"": the code is compiled. Raises CandidateError(LOAD) where the check fails.
    """
    llvm = with_checks(program.llvm) if is_checked else program.llvm
    names = {*DECLARED.findall(llvm), *SIGNATURES}  # launches become calls of these names after this text
    symbols = addresses_of(dict.fromkeys(names, _nothing))
    HostCode(llvm, program.entry, symbols, is_run=False, object_code=object_code)


class InterpretedKernels:
    """C functions that compiled host code calls, each of which interprets one kernel.

    Their addresses are valid as long as this object. After a call of the host code, call ``error.raise_it``,
    which raises the error of a kernel that failed.
    """

    def __init__(self, text: str, write: Write) -> None:
        """Decodes the kernels of MLIR text ("": none); ``write`` receives the text that kernels print."""
        kernels = read_kernels(text) if text else {}
        self.error = KeptError()
        self._write = write
        self._functions = {name: self._function(kernel) for name, kernel in kernels.items()}

    def addresses(self) -> dict[str, int]:
        """Returns the address of each kernel's C function, by the name that the host code calls."""
        return addresses_of(
            {CALLBACK + PREFIX + name: function for name, function in self._functions.items()}
        )

    def _function(self, kernel: LaneKernel) -> Any:
        def launch(sizes: int, *parameters: int) -> None:
            if self.error.is_there:
                return
            try:
                first = MemRef.at(sizes, 1).address(ctypes.sizeof(c_int64))
                gx, gy, gz, bx, by, bz, shared_bytes = (c_int64 * SIZES).from_address(first)
                dynamic_bytes = None if shared_bytes == UNKNOWN_SIZE else shared_bytes
                launched = LaneLaunch((gx, gy, gz), (bx, by, bz), dynamic_bytes)
                kernel.launch(launched, parameters, self._write)
            except BaseException as error:  # noqa: BLE001 - kept, and raised again
                self.error.keep(error)

        return ctypes.CFUNCTYPE(None, *[c_void_p] * (1 + len(kernel.parameters)))(launch)


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
        self._kernels = InterpretedKernels(program.interpreted, write)
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
            self._kernels.error.raise_it()
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
