"""Machine code of host programs, by the JIT or from an object file, and a check that a program compiles."""

import contextlib
import ctypes
import re
from collections.abc import Iterable
from typing import Any

from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import CandidateError, Stage, reason_of
from tuner.core.progress import code_generation
from tuner.mlir.bindings import execution_engine, ir
from tuner.mlir.effects.runner_signatures import C_INTERFACE
from tuner.runtime.cpu.host import require_tiles_for
from tuner.runtime.cpu.jit import module_for_host
from tuner.runtime.cpu.object_files import LoadedObject
from tuner.runtime.programs.host_errors import (
    ABORT,
    HostAssertions,
    addresses_of,
    has_assertions,
    with_checks,
)

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


def check_host_code(
    program: DeviceProgram, *, is_checked: bool, object_code: bytes = b"", functions: Iterable[str] = ()
) -> None:
    """Checks that a program's host code compiles, or that its ``object_code`` loads, without running it.

    ``is_checked``: the code is checked with its checks for accesses of device memory (``with_checks``).
    ``object_code`` b"": the code is compiled. ``functions``: names of functions that launches in the text
    become calls of. Raises CandidateError(LOAD) where the check fails.
    """
    llvm = with_checks(program.llvm) if is_checked else program.llvm
    names = {*DECLARED.findall(llvm), *functions}
    symbols = addresses_of(dict.fromkeys(names, _nothing))
    HostCode(llvm, program.entry, symbols, is_run=False, object_code=object_code)
