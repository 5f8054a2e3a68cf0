"""Lowers a whole program for the host alone: launches become loops, everything becomes LLVM dialect.

Takes the same payload as ``device_lowering.py``; produces code that calls no device, to run on a machine
without a GPU and to compare a device's results with. Matmuls with a script become calls of the script's CPU
kernel. Rejected: kernels whose threads cooperate (``on_host/launches_as_loops.py``).
"""

from collections.abc import Mapping

from tuner.core.device_program import DeviceProgram
from tuner.core.errors import CandidateError, Stage
from tuner.core.problem import Problem
from tuner.core.target import Script
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.failed_assertions import leave_at_failed_assertions
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.gpu.merge_gpu_modules import merge_gpu_modules
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.memref_copies import copy_by_loops
from tuner.mlir.rewrite.walking import walk_where
from tuner.programs.lower.bounds_assertions import assert_bounds
from tuner.programs.lower.matmuls.insert_cpu_kernels import call_kernels, link
from tuner.programs.lower.on_host.drop_streams import drop_streams
from tuner.programs.lower.on_host.launches_as_loops import run_kernels_on_host
from tuner.programs.lower.on_host.libm_names import with_bundled_math
from tuner.programs.lower.on_host.math_lowering import lower_missing_math
from tuner.programs.lower.payload_checks import reject_linalg
from tuner.programs.lower.read_program import INLINE, ProgramPayload
from tuner.programs.lower.signature import arguments_of, results_of, written_arguments
from tuner.programs.lower.streams.drop_tokens import drop_tokens

OUTLINE = "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining)"
TO_LOOPS = "builtin.module(func.func(convert-linalg-to-loops,scf-forall-to-parallel),lower-affine)"
# Memref descriptors, not bare pointers: sizes may be known only at run time, and buffers are returned.
TO_LLVM = (
    "builtin.module(convert-vector-to-scf,"
    "expand-strided-metadata,lower-affine,canonicalize,cse,convert-scf-to-cf,convert-vector-to-llvm,"
    "arith-expand,convert-math-to-libm,convert-math-to-llvm,convert-ub-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,"
    "reconcile-unrealized-casts,cse)"
)
NO_SCRIPTS: Mapping[Problem, Script] = {}


def lower_host_program(
    payload: ProgramPayload, scripts: Mapping[Problem, Script] = NO_SCRIPTS, *, is_checked: bool = False
) -> DeviceProgram:
    """Lowers a payload to LLVM dialect that runs without a GPU, in place; returns the program.

    Matmuls with a script become calls of the script's CPU kernel, launches become loops or calls of the
    interpreter.

    Args:
        payload: the program, as ``read_program`` returns it.
        scripts: the bound script per matmul; matmuls without a script become loops.
        is_checked: whether loads and stores of single elements assert that they are in bounds; vector
            accesses and the scripts' kernels do not.

    Raises CandidateError for a program, or a script, that cannot be lowered.
    """
    module = payload.module
    function = payload.function
    arguments, results = arguments_of(function), results_of(function)
    kernels = call_kernels(payload, scripts)
    interpreted = _make_loops(payload)
    function.attributes[EXPORTED] = ir.UnitAttr.get()
    written = written_arguments(function)
    if is_checked:
        assert_bounds(module)
    lower_missing_math(module)
    run_passes(module, TO_LLVM)
    link(module, kernels)
    _reject_leftovers(module)
    leave_at_failed_assertions(module, payload.entry)
    text = with_bundled_math(jit_text(module))
    return DeviceProgram(text, payload.entry, arguments, results, written, interpreted=interpreted)


def _make_loops(payload: ProgramPayload) -> str:
    """Lowers kernels and linalg to loops in place; returns the text of the kernels to interpret."""
    module = payload.module
    drop_streams(payload.function)
    run_passes(module, OUTLINE)
    drop_tokens(payload.function)
    merge_gpu_modules(module)  # kernel names are then unique
    interpreted = run_kernels_on_host(module)
    # inlines the kernels: only exported functions keep their loops, see ``lowering``
    run_passes(module, INLINE)
    copy_by_loops(module)
    run_passes(module, TO_LOOPS)
    reject_linalg(payload.function)
    return interpreted


def _reject_leftovers(module: ir.Module) -> None:
    found = walk_where(module, lambda op: not op.name.startswith(("llvm.", "builtin.module")))
    if found:
        raise CandidateError(
            Stage.COMPILE, f"payload on the host: {found[0].name} cannot be lowered to loops"
        )
