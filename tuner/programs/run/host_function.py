"""A compiled host program as a Python function: JIT-compiled, checked in a child process, called."""

import contextlib
import ctypes
import re
import sys
from typing import Any, Never

from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.gpu_code import DeviceProgram
from tuner.mlir.bindings import jit_bindings
from tuner.programs.run.host_errors import ABORT, HostAssertions, addresses_of, has_assertions, with_checks
from tuner.programs.run.marshalling import (
    CallFrame,
    PassedArgument,
    allocated_for_results,
    copied,
    pass_arguments,
)
from tuner.programs.run.mgpu import SIGNATURES
from tuner.programs.run.runner_functions import HostHeap, RunnerFunctions, Write, math_symbols
from tuner.programs.run.sampled_launches import InterpretedKernels
from tuner.runtime.cpu.host import request_for
from tuner.runtime.loaded_code import LoadedCode
from tuner.runtime.process_locks import thread_lock


class HostCode:
    """The JIT-compiled machine code of a program's host function, as a callable.

    Unless ``is_run`` is False, its constructors have run, which load the kernels' modules.
    """

    def __init__(
        self,
        llvm_text: str,  # the program in LLVM dialect
        entry: str,  # the function to call
        symbols: dict[str, int],  # name -> address of each function that the code calls
        *,
        is_run: bool = True,
        catches_assertions: bool = False,  # a failing assertion is an error of the call
    ) -> None:
        """Compiles with LLVM -O2, and runs the constructors. Raises CandidateError(LOAD)."""
        request_for(llvm_text)
        jit_ir, execution_engine = jit_bindings()
        is_caught = catches_assertions and has_assertions(llvm_text)
        self._assertions = HostAssertions(aborts=f"@{ABORT}(" in llvm_text) if is_caught else None
        if self._assertions is not None:
            symbols = symbols | self._assertions.addresses()
        try:
            with jit_ir.Context(), jit_ir.Location.unknown():
                module = jit_ir.Module.parse(llvm_text)
                self._engine: Any = execution_engine.ExecutionEngine(module, opt_level=2)
            # before the constructors run: the modules that they load would be null otherwise
            for name, address in symbols.items():
                self._engine.raw_register_runtime(name, ctypes.c_void_p(address))
            if is_run:
                self._engine.initialize()
            address = self._engine.raw_lookup(f"_mlir_ciface_{entry}")
        except (RuntimeError, ValueError, jit_ir.MLIRError) as error:
            raise CandidateError(Stage.LOAD, " ".join(str(error).split())[:300]) from error
        if not address:
            raise CandidateError(Stage.LOAD, f"function {entry!r} is not there with a C interface")
        self._function: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, address: int) -> None:
        """Calls the packed wrapper with the address of the array of pointers to arguments.

        Raises CandidateError(RUN) for a failing assertion, if assertions are caught.
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


DECLARED = re.compile(r"^ *llvm\.func [^@\n]*@([\w.$]+)\(.*[^{\n]$", re.MULTILINE)  # a definition ends with {
_nothing = ctypes.CFUNCTYPE(None)(lambda: None)


def check_host_code(program: DeviceProgram, *, is_checked: bool) -> None:
    """Compiles a program's host code to machine code without running it, to see whether that works.

    ``is_checked``: checks of host accesses are added first, as for a simulated device. Raises
    CandidateError(LOAD) where it does not compile.
    """
    llvm = with_checks(program.llvm) if is_checked else program.llvm
    names = {*DECLARED.findall(llvm), *SIGNATURES}  # launches become calls of these names after this text
    symbols = addresses_of(dict.fromkeys(names, _nothing))
    HostCode(llvm, program.entry, symbols, is_run=False)


# ------------------------------------------------------------------------------
# A compiled host program that uses no device, as a Python function; also the reference for comparisons.


class HostFunction(LoadedCode):
    """A callable that runs a compiled program on this processor.

    It runs in the caller's thread, or in a new one for which the caller waits if the program has assertions
    in functions that are not inlined. Calls of several threads run one after the other.
    """

    load_again = "tuner.compile_program(payload)"

    def __init__(
        self, program: DeviceProgram, write: Write = sys.stdout.write, why_no_fusions: str = ""
    ) -> None:
        """Compiles a program; ``write`` receives the text that it prints. Raises CandidateError(LOAD).

        ``why_no_fusions`` says why it is not compiled as fusions; "" where that was not asked.
        """
        self.program = program
        self.why_no_fusions = why_no_fusions
        self._lock = thread_lock()
        self._heap = HostHeap(None)
        self._runner = RunnerFunctions(write)
        self._kernels = InterpretedKernels(program.interpreted, write)
        called = self._runner.addresses() | self._kernels.addresses()
        symbols = self._heap.addresses() | called | math_symbols(program.llvm)
        self._code = HostCode(program.llvm, program.entry, symbols, catches_assertions=True)

    def __call__(self, *arguments: object, stream: object = None) -> Any:
        """Calls the function and waits for its end.

        Args:
            arguments: numpy arrays, or other arrays in host memory (DLPack), of the function's shapes and
                types; numbers for its scalars.
            stream: None; a program on the host takes no stream.

        Returns:
            The result; a tuple of several results; None without a result.

        Raises:
            UsageError: arguments of another number, shape or type, or a stream.
            CandidateError: an interpreted kernel or an assertion failed (stage RUN).

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> payload = '''
            ... func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
            ...   %y = arith.addf %x, %x : tensor<4xf32>
            ...   return %y : tensor<4xf32>
            ... }
            ... '''
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> program(np.ones(4, np.float32))
            array([2., 2., 2., 2.], dtype=float32)
        """
        if stream is not None:
            raise UsageError(f"{self.program.entry}: takes no stream: the program runs on the host")
        call = self.prepare(*arguments)
        with self._lock:
            self._run(call)
            results = copied(call.frame.results(), self.program, None)
            self._free(call)
        return results[0] if len(results) == 1 else results or None

    def as_graph(self, *_arguments: object) -> Never:
        """Always raises: only a program on a GPU or on the simulator can be captured as a graph.

        Args:
            _arguments: not used.

        Returns:
            Never.

        Raises:
            UsageError: always.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> payload = '''
            ... func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
            ...   %y = arith.addf %x, %x : tensor<4xf32>
            ...   return %y : tensor<4xf32>
            ... }
            ... '''
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> try:
            ...     program.as_graph(np.ones(4, np.float32))
            ... except tuner.UsageError as error:
            ...     print(error)
            twice: the program runs on the host: only a program on a GPU has a graph
        """
        raise UsageError(
            f"{self.program.entry}: the program runs on the host: only a program on a GPU has a graph"
        )

    def close(self) -> None:
        """Does nothing, unlike ``DeviceFunction.close``: the code is freed with this object.

        Returns:
            None.

        Raises:
            Nothing.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> payload = '''
            ... func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
            ...   %y = arith.addf %x, %x : tensor<4xf32>
            ...   return %y : tensor<4xf32>
            ... }
            ... '''
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> program.close()
        """

    @property
    def allocations(self) -> int:
        """Returns how many memory blocks the program has allocated and not freed so far; 0: no leak."""
        return self._heap.in_use

    def prepare(self, *arguments: object) -> "PreparedHostCall":
        """Checks the arguments of a call and lays them out in memory, for ``repeat``.

        Args:
            arguments: those of a call of the program.

        Returns:
            The prepared call, which keeps the arguments alive.

        Raises:
            UsageError: arguments of another number, shape or type.

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> payload = '''
            ... func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
            ...   %y = arith.addf %x, %x : tensor<4xf32>
            ...   return %y : tensor<4xf32>
            ... }
            ... '''
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> call = program.prepare(np.ones(4, np.float32))
            >>> program.repeat(call, 3)
        """
        passed = pass_arguments(self.program, arguments, 0)
        return PreparedHostCall(passed, CallFrame(passed, (), self.program.results))

    def repeat(self, call: "PreparedHostCall", times: int) -> None:
        """Calls the function several times on the same arguments and drops the results, for timing.

        Args:
            call: what ``prepare`` returned.
            times: number of calls.

        Returns:
            None.

        Raises:
            CandidateError: an interpreted kernel or an assertion failed (stage RUN).

        Example:
            >>> import numpy as np
            >>> import tuner
            >>> payload = '''
            ... func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
            ...   %y = arith.addf %x, %x : tensor<4xf32>
            ...   return %y : tensor<4xf32>
            ... }
            ... '''
            >>> program = tuner.compile_program(payload, target="cpu")
            >>> program.repeat(program.prepare(np.ones(4, np.float32)), 3)
            >>> program.allocations
            0
        """
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
        for address in allocated_for_results(call.frame.results(), call.passed):
            self._heap.free(address)
        self._heap.give_back(self._heap.take_freed())


class PreparedHostCall:
    """The checked arguments of one call of a ``HostFunction``, laid out in memory for repeated calls."""

    def __init__(self, passed: tuple[PassedArgument, ...], frame: CallFrame) -> None:
        self.passed = passed
        self.frame = frame
