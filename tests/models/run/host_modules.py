"""Small host programs in GPU dialect with explicit streams, compiled by stock passes to device programs."""

from functools import cache
from typing import Any

from tests.models.file_check import filled
from tests.texts import text_beside
from tuner.core.device_programs import BufferType, DeviceProgram, ValueType
from tuner.gpu.mlir.lowering import compile_kernels
from tuner.gpu.mlir.shared_memory import make_shared_memory_external
from tuner.mlir import transform
from tuner.mlir.bindings import ir, passmanager
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.ir.reading import walk

N = 64
BUFFER = BufferType("f32", (N,))
M = f"memref<{N}xf32>"
TO_NVVM = (
    "builtin.module(nvvm-attach-target{chip=sm_90 features=+ptx80 O=3},"
    "gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=false},"
    "canonicalize,cse,reconcile-unrealized-casts))"
)
TO_LLVM = (
    "builtin.module(convert-scf-to-cf,convert-cf-to-llvm,expand-strided-metadata,lower-affine,"
    "convert-arith-to-llvm,gpu-to-llvm,convert-func-to-llvm,finalize-memref-to-llvm,"
    "reconcile-unrealized-casts,canonicalize,cse)"
)
# 2 a + 2 b: each product on a stream of its own, the sum behind both.
TWO_CHAINS = text_beside(__file__, "TWO_CHAINS")
# The same by upstream's tokens: gpu-to-llvm makes the streams.
TOKENS = text_beside(__file__, "TOKENS")
# b = 2 a in device memory
IN_PLACE = text_beside(__file__, "IN_PLACE")


def two_chains(body: str = TWO_CHAINS) -> DeviceProgram:
    """Returns the program; ``body`` may be a changed one."""
    return compiled(body, (BUFFER, BUFFER), (BUFFER,), streams=2)


@cache
def compiled(
    body: str,
    arguments: tuple[ValueType, ...],
    results: tuple[ValueType, ...],
    streams: int,
    written: tuple[bool, ...] | None = None,
    device_arguments: bool = False,
) -> DeviceProgram:
    """Compiles a function of %a, %b, ... and streams %s0, %s1, ...; tokens of the streams are %t_s0, ..."""
    names = [*(f"%{name}: {spelled(type_)}" for name, type_ in zip("abcdefgh", arguments, strict=False))]
    names += [f"%s{number}: !llvm.ptr" for number in range(streams)]
    outs = ", ".join(spelled(result) for result in results)
    cast = "%t_s{0} = builtin.unrealized_conversion_cast %s{0} : !llvm.ptr to !gpu.async.token"
    tokens = "\n".join(map(cast.format, range(streams)))
    text = filled(__file__, "MODULE", names=", ".join(names), outs=outs, tokens=tokens, body=body)
    changed = written if written is not None else (False,) * len(arguments)
    return DeviceProgram(to_llvm(text), "main", arguments, results, changed, device_arguments, streams)


def to_llvm(text: str) -> str:
    with transform.new_context(), ir.Location.unknown():
        module: Any = transform.parse(text, "test")
        passmanager.PassManager.parse(TO_NVVM).run(module.operation)
        make_shared_memory_external(module, 16)
        for kernels in walk(module, "gpu.module"):
            compile_kernels(kernels)
        passmanager.PassManager.parse(TO_LLVM).run(module.operation)
        return jit_text(module)


def spelled(type_: ValueType) -> str:
    if not isinstance(type_, BufferType):
        return type_.element
    sizes = "".join("?x" if size is None else f"{size}x" for size in type_.shape)
    return f"memref<{sizes}{type_.element}>"


@cache
def host_only(types: tuple[ValueType, ...]) -> DeviceProgram:
    names = [f"%v{number}" for number in range(len(types))]
    listed = ", ".join(f"{name}: {spelled(type_)}" for name, type_ in zip(names, types, strict=True))
    spellings = ", ".join(map(spelled, types))
    head = f"func.func @main({listed}) -> ({spellings}) attributes {{llvm.emit_c_interface}}"
    text = f"module {{ {head} {{ return {', '.join(names)} : {spellings} }} }}"
    return DeviceProgram(to_llvm(text), "main", types, types, (False,) * len(types))
