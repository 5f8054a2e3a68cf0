"""JIT-compiles LLVM dialect to a function that can call functions of this process."""

import contextlib
import ctypes
from typing import Any

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import jit_bindings
from tuner.mlir.tile_permission import request_for
from tuner.programs.run.host_assertions import ABORT, HostAssertions, has_assertions


class HostCode:
    """The JIT-compiled machine code of a program's host function, as a callable.

    Unless ``is_run`` is False, its constructors have run, which load the kernels' modules.
    """

    def __init__(
        self,
        llvm_text: str,
        entry: str,
        symbols: dict[str, int],
        *,
        is_run: bool = True,
        catches_assertions: bool = False,
    ) -> None:
        """Compiles with LLVM -O2, and runs the constructors. Raises CandidateError(LOAD).

        All symbols are registered before the constructors run, since the modules that they load would be null
        otherwise.

        Args:
            llvm_text: the program in LLVM dialect.
            entry: the function to call.
            symbols: name -> address of each function that the code calls.
            is_run: whether the constructors run; False: the code is compiled only.
            catches_assertions: whether a failing assertion is an error of the call, see ``host_assertions``.
        """
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
