"""Just-in-time compilation of LLVM dialect to functions of this process, for the host's processor."""

import ctypes
from functools import cache
from importlib.resources import files
from typing import Any

from tuner.core.errors import CandidateError, Stage, reason_of
from tuner.mlir.bindings import jit_bindings
from tuner.runtime.cpu.host import require_tiles_for


class JittedModule:
    """Machine code, freed with this object; ``addresses``: of wrappers ``void(void **arguments)``."""

    def __init__(self, llvm_text: str, entries: tuple[str, ...]) -> None:
        """Compiles with -O3 and looks up ``entries``; requests AMX tiles. Raises CandidateError(LOAD)."""
        require_tiles_for(llvm_text)
        jit_ir, execution_engine = jit_bindings()
        try:
            with jit_ir.Context(), jit_ir.Location.unknown():
                module = jit_ir.Module.parse(llvm_text)
                self._engine: Any = execution_engine.ExecutionEngine(module, opt_level=3)
                addresses = {entry: self._engine.raw_lookup(entry) for entry in entries}
        except (RuntimeError, ValueError, jit_ir.MLIRError) as error:
            raise CandidateError(Stage.LOAD, reason_of(error)) from error
        missing = [entry for entry, address in addresses.items() if not address]
        if missing:  # where a symbol is unresolved, the JIT prints its name to stderr
            is_defined = f"@{missing[0]}(" in llvm_text
            why = "calls what the JIT cannot resolve" if is_defined else "is not in the code"
            raise CandidateError(Stage.LOAD, f"function {missing[0]!r} {why}")
        self.addresses = addresses  # entry -> address of its packed wrapper, void(void **arguments)


def loop_text(name: str) -> str:
    """Returns the MLIR text, in LLVM dialect, of the file ``name``.mlir in the folder tuner/runtime/cpu."""
    return (files("tuner.runtime.cpu") / f"{name}.mlir").read_text()


@cache
def shipped_module(name: str, entry: str) -> JittedModule:
    """Returns the machine code of ``name``.mlir of this folder with the function ``entry``; compiled once."""
    return JittedModule(loop_text(name), (entry,))


class PackedArguments:
    """Arguments of a call in MLIR's packed convention, and its result, at the array ``address``."""

    def __init__(self, *values: int) -> None:
        count = len(values) + 1
        self._values = (ctypes.c_uint64 * count)(*values, 0)
        first = ctypes.addressof(self._values)
        self._pointers = (ctypes.c_void_p * count)(*[first + 8 * i for i in range(count)])
        self.address = ctypes.addressof(self._pointers)

    @property
    def result(self) -> int:
        """Returns the last call's result, 64 bits unsigned; 0 before, and of functions without one."""
        return int(self._values[len(self._values) - 1])


class CompiledFunction:
    """A JIT-compiled function as a Python callable that takes PackedArguments; a call releases the GIL."""

    def __init__(self, address: int) -> None:
        self._call: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, arguments: PackedArguments) -> None:
        self._call(arguments.address)
