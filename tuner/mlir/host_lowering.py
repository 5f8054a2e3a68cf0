"""The same program without a GPU: launches become loops, and everything LLVM dialect for the host's JIT."""

import re
from collections.abc import Mapping

from tuner.device_program import DeviceProgram
from tuner.errors import CandidateError, Stage
from tuner.mlir.bindings import ir
from tuner.mlir.cpu_splicing import call_kernels, link
from tuner.mlir.guards import DECLARATION, RESOLVABLE
from tuner.mlir.lowering import EXPORTED, without_builtins
from tuner.mlir.ops.dialect import walk_where
from tuner.mlir.passes.gpux_on_host import drop_streams
from tuner.mlir.passes.host_math import lower_missing_math
from tuner.mlir.passes.kernels_on_host import run_kernels_on_host
from tuner.mlir.passes.one_gpu_module import merge_gpu_modules
from tuner.mlir.passes.view_copies import copy_by_loops
from tuner.mlir.program_payload import INLINE, RUNTIME, ProgramPayload, reject_linalg, run_passes
from tuner.mlir.program_signature import arguments_of, results_of, written_arguments
from tuner.problem import Problem
from tuner.target import Script

OUTLINE = "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining)"
TO_LOOPS = "builtin.module(func.func(convert-linalg-to-loops,scf-forall-to-parallel),lower-affine)"
# Descriptors, not bare pointers: sizes may be known only at run time, and buffers are returned.
TO_LLVM = (
    "builtin.module(convert-vector-to-scf,"
    "expand-strided-metadata,lower-affine,canonicalize,cse,convert-scf-to-cf,convert-vector-to-llvm,"
    "arith-expand,convert-math-to-libm,convert-math-to-llvm,convert-ub-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,"
    "reconcile-unrealized-casts,cse)"
)
NO_SCRIPTS: Mapping[Problem, Script] = {}
MATH_PREFIX = "math_"  # of functions of the C library that ``tuner.runtime.host_math`` finds


def lower_host_program(
    payload: ProgramPayload, scripts: Mapping[Problem, Script] = NO_SCRIPTS
) -> DeviceProgram:
    """Lowers in place; matmuls with a script become its kernel, the result calls no device.

    Raises CandidateError.
    """
    module = payload.module
    function = payload.function
    arguments, results = arguments_of(function), results_of(function)
    written = _written_by_loops(payload) if scripts else None
    kernels = call_kernels(payload, scripts)
    _make_loops(payload)
    function.attributes[EXPORTED] = ir.UnitAttr.get()
    if written is None:
        written = written_arguments(function)
    lower_missing_math(module)
    run_passes(module, TO_LLVM)
    link(module, kernels)
    _reject_leftovers(module)
    text = with_own_math(without_builtins(module))
    return DeviceProgram(text, payload.entry, arguments, results, written)


def with_own_math(text: str) -> str:
    """Renames what is declared of the math library: LLVM knows those names, the JIT has them wrong."""
    for name in set(DECLARATION.findall(text)) - RESOLVABLE:
        if not name.startswith(RUNTIME):
            text = re.sub(rf"@{re.escape(name)}\b", f"@{MATH_PREFIX}{name}", text)
    return text


def _written_by_loops(payload: ProgramPayload) -> tuple[bool, ...]:
    """Tells which arguments are written, without kernels: what those do with an address cannot be seen."""
    loops = ProgramPayload(ir.Module.parse(str(payload.module)), payload.entry)
    _make_loops(loops)
    return written_arguments(loops.function)


def _make_loops(payload: ProgramPayload) -> None:
    module = payload.module
    drop_streams(payload.function)
    run_passes(module, OUTLINE)
    merge_gpu_modules(module)  # kernels then have names of their own
    run_kernels_on_host(module)
    run_passes(module, INLINE)  # the kernels: only exported functions keep their loops, see ``lowering``
    copy_by_loops(module)
    run_passes(module, TO_LOOPS)
    reject_linalg(payload)


def _reject_leftovers(module: ir.Module) -> None:
    found = walk_where(module, lambda op: not op.name.startswith(("llvm.", "builtin.module")))
    if found:
        raise CandidateError(
            Stage.COMPILE, f"payload on the host: found {found[0].name}, allowed what becomes loops"
        )
