"""The object code of CPU kernels, as the JIT makes it, in a file."""

import ctypes
from pathlib import Path

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import jit_bindings
from tuner.mlir.cpu.jit_guards import DECLARATION, RESOLVABLE

_ADDRESS_OF_NOTHING = 1  # nothing of the code runs


def write_object(
    llvm_text: str,
    file: Path,
    stage: Stage = Stage.LOAD,
    *,
    is_position_independent: bool = False,
    entry: str = "",
) -> None:
    """Writes the object code that LLVM compiles from LLVM-dialect text, with -O3; nothing of it runs.

    A function is compiled for the processor that its attribute "target-cpu" names, else for this one.
    ``is_position_independent``: the code can be linked into executables and shared objects. ``entry``: an
    exported function; must be given for a module with internal functions, which have no wrappers of the JIT.
    Raises CandidateError of ``stage`` for text that LLVM does not compile.
    """
    jit_ir, execution_engine = jit_bindings()
    try:
        with jit_ir.Context(), jit_ir.Location.unknown():
            module = jit_ir.Module.parse(llvm_text)
            engine = execution_engine.ExecutionEngine(
                module, opt_level=3, enable_object_dump=True, enable_pic=is_position_independent
            )
            for name in _math_functions(llvm_text) if entry else ():  # the JIT looks them up by a wrong name
                engine.raw_register_runtime(name, ctypes.c_void_p(_ADDRESS_OF_NOTHING))
            engine.initialize()
            if entry and not engine.raw_lookup(entry):  # compiles the module, else each function is looked up
                raise CandidateError(stage, f"function {entry!r} calls what the JIT cannot resolve")
            engine.dump_to_object_file(str(file))
    except (RuntimeError, ValueError, jit_ir.MLIRError) as error:
        raise CandidateError(stage, " ".join(str(error).split())[:300]) from error


def _math_functions(llvm_text: str) -> list[str]:
    """Returns the functions of the C library that code declares and that the JIT does not resolve."""
    return sorted(set(DECLARATION.findall(llvm_text)) - RESOLVABLE)
