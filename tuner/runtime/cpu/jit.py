"""Just-in-time compilation of LLVM dialect to functions of this process, for the host's processor.

``module_for_host`` adapts a module to this processor, ``JittedModule`` compiles it. ``CompiledFunction``
calls a function with ``PackedArguments``.
"""

import ctypes
from functools import cache
from importlib.resources import files
from typing import Any

from tuner.core.errors import CandidateError, Stage, reason_of
from tuner.core.instruction_sets import AARCH64, SPIN_WAIT, X86_64
from tuner.core.progress import code_generation
from tuner.mlir.bindings import execution_engine, ir
from tuner.runtime.cpu.bounds import compare_with_constants
from tuner.runtime.cpu.host import (
    own_architecture,
    own_flags,
    own_limit,
    require_own_intrinsics,
    require_tiles_for,
)

# LLVM moves bytes by SSE4A's insertq where a processor has it, AMD's: an instruction of the old encoding,
# which takes 70 ns among AVX's on a Zen 3; an i8 matmul took 13 times as long. An ExecutionEngine takes all
# features of its processor, so an attribute that leaves out one names all others by which LLVM chooses
# instructions.
SSE4A = "sse4a"
AVX512VL = "avx512vl"  # masks any store at no cost
SAME = """sse sse2 ssse3 avx avx2 fma f16c bmi2 popcnt movbe aes vaes vpclmulqdq gfni adx cx16
avx512f avx512bw avx512cd avx512dq avx512vl avx512ifma avx512vbmi"""
FEATURES = {  # LLVM's name -> flag of /proc/cpuinfo
    **{name: name for name in SAME.split()},
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "sha": "sha_ni",
    "avxvnni": "avx_vnni",
    **{
        f"avx512{name}": f"avx512_{name}" for name in ("vbmi2", "vnni", "bitalg", "bf16", "vpopcntdq", "fp16")
    },
}


@cache
def host_features() -> str:
    """Returns the attribute "target-features" for this processor with SSE4A switched off.

    "" if no attribute is needed: the processor has no SSE4A, and code may use all that it has.
    """
    flags = own_flags()
    if SSE4A not in flags and own_limit() is None:
        return ""
    named = [f"{'+' if flag in flags else '-'}{name}" for name, flag in FEATURES.items()]
    return ",".join((*named, f"-{SSE4A}"))


def module_for_host(llvm_text: str) -> Any:
    """Parses LLVM-dialect text in the JIT's current context; returns the module, adapted to this processor.

    On a processor with SSE4A, or limited to a lesser one, all functions without "target-features" get the
    same ``host_features``: LLVM inlines no function into one that lacks some of its features. No function may
    call memset, memcpy or the like in place of loops: for some of these the JIT of these wheels looks up
    another name ("oolPop") and finds nothing. Raises CandidateError(LOAD) for intrinsics of another
    architecture.
    """
    require_own_intrinsics(llvm_text)
    features = host_features()
    module = ir.Module.parse(llvm_text)
    if _has_slow_masks():
        compare_with_constants(module)
    for operation in module.body.operations:
        op = operation.operation
        if op.name != "llvm.func" or not op.regions[0].blocks:
            continue
        attributes = str(op.attributes["passthrough"])[1:-1] if "passthrough" in op.attributes else ""
        added = [attributes] if attributes else []
        if "no-builtins" not in attributes:
            added.append('"no-builtins"')
        if bool(features) and "target-features" not in attributes:
            added.append(f'["target-features", "{features}"]')
        op.attributes["passthrough"] = ir.Attribute.parse(f"[{', '.join(added)}]")
    return module


@cache
def _has_slow_masks() -> bool:
    """Returns whether a masked store may take longer than a plain store on this processor."""
    return own_architecture() is X86_64 and AVX512VL not in own_flags()


class JittedModule:
    """JIT-compiled machine code, freed with this object.

    ``addresses``: function name -> address of its wrapper ``void(void **arguments)``.
    """

    def __init__(self, llvm_text: str, entries: tuple[str, ...]) -> None:
        """Compiles with -O3 and looks up ``entries``; requests AMX tiles. Raises CandidateError(LOAD)."""
        require_tiles_for(llvm_text)
        try:
            with code_generation(llvm_text), ir.Context(), ir.Location.unknown():
                module = module_for_host(llvm_text)
                self._engine: Any = execution_engine().ExecutionEngine(module, opt_level=3)
                addresses = {entry: self._engine.raw_lookup(entry) for entry in entries}
        except (RuntimeError, ValueError, ir.MLIRError) as error:
            raise CandidateError(Stage.LOAD, reason_of(error)) from error
        missing = [entry for entry, address in addresses.items() if not address]
        if missing:  # where a symbol is unresolved, the JIT prints its name to stderr
            is_defined = f"@{missing[0]}(" in llvm_text
            why = "calls what the JIT cannot resolve" if is_defined else "is not in the code"
            raise CandidateError(Stage.LOAD, f"function {missing[0]!r} {why}")
        self.addresses = addresses  # entry -> address of its packed wrapper, void(void **arguments)


# Architecture -> words in shipped files -> LLVM dialect. Linux lets processes use dc civac: SCTLR_EL1.UCI.
FLUSHES = {
    X86_64.name: {
        "FLUSH_LINE": 'llvm.call_intrinsic "llvm.x86.sse2.clflush"(%at) : (!llvm.ptr) -> ()',
        "FLUSHED": 'llvm.call_intrinsic "llvm.x86.sse2.mfence"() : () -> ()',
    },
    AARCH64.name: {
        "FLUSH_LINE": 'llvm.inline_asm has_side_effects "dc civac, $0", "r" %at : (!llvm.ptr) -> ()',
        "FLUSHED": 'llvm.inline_asm has_side_effects "dsb ish", "" : () -> ()',
    },
}


def loop_text(name: str) -> str:
    """Returns the MLIR text, in LLVM dialect, of the file ``name``.mlir in the folder tuner/runtime/cpu.

    What differs by architecture is filled in for this processor's.
    """
    text = (files("tuner.runtime.cpu") / f"{name}.mlir").read_text()
    architecture = own_architecture()
    for word, code in FLUSHES[architecture.name].items():
        text = text.replace(word, code)
    return text.replace(SPIN_WAIT, architecture.spin_wait)


@cache
def shipped_module(name: str, entry: str) -> JittedModule:
    """Returns the machine code, compiled once, of the shipped file ``name``.mlir with its ``entry``."""
    return JittedModule(loop_text(name), (entry,))


class PackedArguments:
    """Arguments of a call in MLIR's packed convention, and room for its result.

    ``address``: of the array of pointers that the function takes. ``values``: the arguments, then the result;
    may be changed between calls.
    """

    __slots__ = ("_pointers", "address", "values")

    def __init__(self, *values: int) -> None:
        count = len(values) + 1
        self.values = (ctypes.c_uint64 * count)(*values, 0)
        first = ctypes.addressof(self.values)
        self._pointers = (ctypes.c_void_p * count)(*[first + 8 * i for i in range(count)])
        self.address = ctypes.addressof(self._pointers)

    @property
    def result(self) -> int:
        """Returns the last call's result, an unsigned 64-bit integer; 0 before a call or without a result."""
        return int(self.values[len(self.values) - 1])


class CompiledFunction:
    """A JIT-compiled function as a Python callable that takes PackedArguments; it runs without the GIL."""

    def __init__(self, address: int) -> None:
        self._call: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, arguments: PackedArguments) -> None:
        self._call(arguments.address)
