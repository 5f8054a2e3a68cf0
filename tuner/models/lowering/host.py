"""Lowers a whole program for the host: matmuls become calls of kernels, everything else loops."""

from collections.abc import Mapping, Sequence

from tuner.core.device_programs import DeviceProgram
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.mlir.bindings import ir
from tuner.mlir.cpu.failed_assertions import leave_at_failed_assertions
from tuner.mlir.cpu.lowering import jit_text
from tuner.mlir.cpu.pipeline import EXPORTED
from tuner.mlir.cpu.stack_memory import bound_stacks
from tuner.mlir.ir.memrefs import copy_by_loops
from tuner.mlir.ir.reading import walk_where
from tuner.mlir.passes import run_passes
from tuner.mlir.programs import host_code
from tuner.mlir.programs.entry import arguments_of, reject_linalg, results_of, written_arguments
from tuner.mlir.programs.payload import ProgramPayload
from tuner.models.fusions.payload import Weight
from tuner.models.lowering.constants import attach_data, resident_buffers
from tuner.models.lowering.matmul_calls import call_kernels, link
from tuner.models.lowering.read_program import INLINE
from tuner.runtime.programs.devices import device_operations

TO_LOOPS = "builtin.module(func.func(convert-linalg-to-loops,scf-forall-to-parallel),lower-affine)"
# Memref descriptors, not bare pointers: sizes may be known only at run time, and buffers are returned.
VECTORS_TO_LOOPS = (
    "builtin.module(convert-vector-to-scf,expand-strided-metadata,lower-affine,canonicalize,cse)"
)
TO_LLVM = (
    "builtin.module(convert-scf-to-cf,convert-vector-to-llvm,"
    "arith-expand,convert-math-to-libm,convert-math-to-llvm,convert-ub-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,"
    "reconcile-unrealized-casts,cse)"
)
NO_SCRIPTS: Mapping[Problem, Script] = {}


def lower_host_program(
    payload: ProgramPayload,
    scripts: Mapping[Problem, Script] = NO_SCRIPTS,
    *,
    is_checked: bool = False,
    constants: Sequence[Weight] = (),
) -> DeviceProgram:
    """Lowers a payload to LLVM dialect that runs without a GPU, in place; returns the program.

    Matmuls with a script become calls of its CPU kernel, others loops; launches become loops or calls of the
    interpreter. ``is_checked``: loads and stores of single elements assert that they are in bounds.
    ``constants``: the function's last arguments, of ``take_constants``; the code has the data of others.
    Raises CandidateError for a program, or a script, that cannot be lowered.
    """
    module = payload.module
    function = payload.function
    arguments = arguments_of(function)
    results = results_of(function)
    attach_data(module, payload.resources)
    kernels = call_kernels(payload, scripts)
    interpreted = _make_loops(payload)
    function.attributes[EXPORTED] = ir.UnitAttr.get()
    written = written_arguments(function)
    if is_checked:
        host_code.assert_bounds(module)
    host_code.lower_missing_math(module)
    run_passes(module, VECTORS_TO_LOOPS)
    bound_stacks(module)
    run_passes(module, TO_LLVM)
    link(module, kernels)
    left = walk_where(module, lambda op: not op.name.startswith(("llvm.", "builtin.module")))
    if left:
        raise CandidateError(Stage.COMPILE, f"payload on the host: {left[0].name} cannot be lowered to loops")
    leave_at_failed_assertions(module, payload.entry)
    text = host_code.with_prefixed_c_functions(jit_text(module))
    program = DeviceProgram(
        *(text, payload.entry, arguments, results, written),
        interpreted=interpreted,
    )
    if not constants:
        return program
    return program.with_resident(resident_buffers(constants, written[-len(constants) :]))


def _make_loops(payload: ProgramPayload) -> str:
    """Lowers kernels and linalg to loops in place; returns the text of the kernels to interpret."""
    module = payload.module
    interpreted = device_operations().to_host(payload)
    # inlines the kernels: LLVM may make calls of loops, but for exported functions (``pipeline.NO_BUILTINS``)
    run_passes(module, INLINE)
    copy_by_loops(module)
    run_passes(module, TO_LOOPS)
    reject_linalg(payload.function)
    return interpreted
