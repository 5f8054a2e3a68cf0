"""Lowers a transformed payload, or the function of a fusion, to LLVM dialect for the JIT.

``lower_to_llvm`` runs the pass pipelines, down to functions that take bare pointers; ``compile_fusion`` first
applies the script of a fusion. ``reject_unjittable`` checks the result. GPU ops are errors, and so are ops on
tensors, which a script or ``bufferize_remaining_tensors`` has to bufferize.
"""

import re

from tuner.core.dtypes import NUMBER_TYPES
from tuner.core.errors import CandidateError, Stage
from tuner.core.fusion_facts import LAYOUT
from tuner.core.fusions import FUSION_ENTRY
from tuner.core.packings import FusionCode
from tuner.mlir.bindings import ir
from tuner.mlir.cpu import pipeline
from tuner.mlir.cpu.amx_emulation import tiles_as_vectors
from tuner.mlir.cpu.bf16_emulation import BF16, store_bf16_as_integers
from tuner.mlir.cpu.failed_assertions import return_failed_assertions
from tuner.mlir.cpu.leading_assertions import lead_loops_with_assertions
from tuner.mlir.cpu.masks import (
    fill_masked_lanes,
    leave_one_op_in_masks,
    read_masks_as_bytes,
    store_truths_as_bytes,
    unmask_truths,
)
from tuner.mlir.cpu.packs import packs_to_loops
from tuner.mlir.cpu.stack_memory import bound_stacks
from tuner.mlir.cpu.threads import divide_among_threads
from tuner.mlir.fusions.function import STORE, fusion_function, parse_fusion, prepare, prepare_matmul
from tuner.mlir.ir.building import LOOP_ANNOTATION
from tuner.mlir.ir.dot_products import lower_dot_products
from tuner.mlir.ir.memrefs import copy_by_loops
from tuner.mlir.ir.packed_weights import packing_of
from tuner.mlir.ir.reading import location_of, walk, walk_where
from tuner.mlir.ir.table_lookup import lower_lookups
from tuner.mlir.math.lowering import expand_math
from tuner.mlir.passes import reached, run_passes
from tuner.mlir.transform import apply_script, parse

# Functions of the C library that lowered code may call. Any other undefined symbol crashes the JIT.
RESOLVABLE = frozenset(
    {"malloc", "free", "aligned_alloc", "memcpy", "memset", "sem_wait", "sem_post", "sched_yield"}
)
DECLARATION = re.compile(
    r'^ *llvm\.func (?:\w+ )*@"?([^"(\n]+)"?\(.*[^{\n]$', re.MULTILINE
)  # no body follows
# A vector<700xf32> takes the JIT seconds; the widest vector needed is the 28 accumulators of a register tile,
# which a bf16 kernel passes on as one vector<448xf32> and which take 0.1 to 0.3 s to load.
VECTOR_LIMIT_BYTES = 2048
# vector<4x[4]xf32>, 4 x 4 numbers or a multiple; and the multiple, in a loop over scalable tiles
SCALABLE = re.compile(r"vector<[^<>]*\[\d+\][^<>]*>|llvm\.intr\.vscale")
# The sequence by which a script of matmuls finds the one that it is for: tuner.space.scripts.guard.
MATMUL_GUARD = "@the_matmul("
# By which a shipped CPU script finds its functions again after bufferization: strategies/_matmul_cpu.mlir.j2.
SCRIPT_MARKS = ("tuned", "part_0", "part_1")
# The lowering of scf.for hands its attribute to llvm.br, where LLVM reads it only by this name.
LLVM_LOOP_ANNOTATION = "loop_annotation"
ATTRIBUTES = "tuner."  # prefix of attributes that mean something to tuner only
DEFINITION = re.compile(r"^( *llvm\.func @.*?) *\{ *$", re.MULTILINE)  # its end, where attributes go


def reject_unjittable(llvm_text: str) -> None:
    """Raises CandidateError(RESOURCES) for LLVM dialect that crashes the JIT or takes the JIT seconds.

    That is a call of a function that the JIT cannot resolve (not in ``RESOLVABLE``), a vector above
    ``VECTOR_LIMIT_BYTES`` (2048), and a scalable vector.
    """
    _reject_scalable(llvm_text)
    missing = sorted(set(DECLARATION.findall(llvm_text)) - RESOLVABLE)
    if missing:
        raise CandidateError(
            Stage.RESOURCES, f"unresolved symbol {missing[0]}: the code copies or prints by library call"
        )
    for count, dtype in sorted(set(re.findall(r"vector<(\d+)x(\w+)>", llvm_text))):
        bits = NUMBER_TYPES[dtype].bits if dtype in NUMBER_TYPES else 64
        size = int(count) * bits // 8
        if size > VECTOR_LIMIT_BYTES:
            raise CandidateError(
                Stage.RESOURCES, f"vector<{count}x{dtype}> is {size} bytes wide, allowed {VECTOR_LIMIT_BYTES}"
            )


def bufferize_remaining_tensors(module: ir.Module) -> None:
    """Bufferizes the tensors that a script leaves, in place: a user's schedule may not do it.

    A module without tensors stays as it is, except that masks then hold one op each. Raises
    CandidateError(COMPILE) where a pass fails.
    """
    leave_one_op_in_masks(module)
    if walk_where(module, lambda op: any("tensor<" in str(result.type) for result in op.results)):
        run_passes(module, pipeline.TENSORS_TO_BUFFERS)
        copy_by_loops(module)


def lower_to_llvm(module: ir.Module, *, emulates: bool = False) -> str:
    """Lowers a transformed payload to LLVM dialect in place; returns the text of the module for the JIT.

    ``module`` holds functions on memrefs of static sizes, tiled and vectorized by a script; each becomes an
    entry point that takes bare pointers. ``emulates``: AMX tiles and dot products of bytes become vector
    code, which every processor runs. Raises CandidateError: COMPILE where a pass fails, for example on ops
    of tensors (a script bufferizes) and on GPU ops; RESOURCES for scalable vectors.

        func.func @f(%c: memref<4x8xf32, strided<[9, 1]>>, %i: index, %j: index) {
          memref.store %x, %c[%i, %j] : memref<4x8xf32, strided<[9, 1]>>
      becomes
        llvm.func @f(%c: !llvm.ptr, %i: i64, %j: i64) attributes {llvm.emit_c_interface, ...["no-builtins"]} {
          %row = llvm.mul %i, %c9 overflow<nsw, nuw> : i64
          %at = llvm.add %row, %j overflow<nsw, nuw> : i64
          %p = llvm.getelementptr inbounds|nuw %base[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
          llvm.store %x, %p : f32, !llvm.ptr
    """
    if emulates:
        tiles_as_vectors(module)
    for op in module.body.operations:
        if op.operation.name == "func.func" and not op.is_external:
            op.attributes[pipeline.EXPORTED] = ir.UnitAttr.get()
            for mark in SCRIPT_MARKS:
                if mark in op.attributes:
                    del op.attributes[mark]
    packs_to_loops(module)
    run_passes(module, pipeline.TO_LOOPS)
    lower_dot_products(module, emulates=emulates)
    reached("loops", module)
    expand_math(module)
    bound_stacks(module)
    run_passes(module, pipeline.LOOPS_TO_LLVM)
    _require_llvm(module)
    return jit_text(module)


def _reject_scalable(text: str) -> None:
    scalable = SCALABLE.search(text)
    if scalable is not None:
        reason = f"{scalable[0]}: no target has scalable vectors; give sizes without brackets"
        raise CandidateError(Stage.RESOURCES, reason)


def _require_llvm(module: ir.Module) -> None:
    """Raises CandidateError(COMPILE) with the first op that no pass has lowered.

    Raises CandidateError(RESOURCES) if that op has scalable vectors, which no target has.
    """
    left = walk_where(module, lambda op: not op.name.startswith(("llvm.", "builtin.")))
    if left:
        _reject_scalable(str(left[0]))
        where = location_of(left[0])
        raise CandidateError(
            Stage.COMPILE, f"{left[0].name} {where}: no lowering for CPUs; lower it in the script"
        )


def jit_text(module: ir.Module) -> str:
    """Returns the text of a module in LLVM dialect for the JIT; changes the module in place.

    bf16 is stored as 16-bit integers. Exported functions get ``no-builtins``, so that LLVM does not replace
    their loops by library calls.
    """
    text = str(module)
    if BF16 in text:
        store_bf16_as_integers(module)
        text = str(module)
    text = text.replace(f"{{{LOOP_ANNOTATION} =", f"{{{LLVM_LOOP_ANNOTATION} =")
    marked = f"attributes {{{pipeline.EXPORTED}}}"
    return text.replace(marked, f"attributes {{{pipeline.EXPORTED}, {pipeline.NO_BUILTINS}}}")


def compile_fusion(text: str, script: str | None, threads: int = 1, *, emulates: bool = False) -> FusionCode:
    """Compiles a fusion's text with a bound script, in the current MLIR context.

    Math ops become the formulas of ``tuner.mlir.math``, on vectors too, or stay for LLVM; others fail.

        func.func @fusion(%a: memref<8x64xf32>, %w: memref<2x64x48xf32> {tuner.packing = 48 : i64}, ...)
      becomes
        llvm.func @fusion(%a: !llvm.ptr, %w: !llvm.ptr, ...) attributes {passthrough = ["no-builtins"]}
      and the packings (None, WeightPacking(48), ...)

    Args:
        text: a module with the function ``fusion``, as ``Fusion.text`` has it.
        script: a transform script; None: scalar loops.
        threads: how many threads the loops are divided for, where they can be divided; 1: they are not.
        emulates: AMX tiles and dot products of bytes become vector code, which every processor runs.

    Raises:
        CandidateError: BIND for text that does not parse, COMPILE where the script or the lowering fails.
    """
    module = parse_fusion(text)
    if script is not None:
        read_masks_as_bytes(fusion_function(module))
    if script is not None and MATMUL_GUARD in script and LAYOUT in fusion_function(module).attributes:
        prepare_matmul(module)
    else:
        prepare(module)
    inputs = len(fusion_function(module).regions[0].blocks[0].arguments) - len(walk(module, STORE))
    if script is None:
        run_passes(module, pipeline.TENSORS_TO_BUFFERS)
        copy_by_loops(module)
    else:
        apply_script(module, parse(script, "script"))
    function = fusion_function(module)
    packings = tuple(packing_of(function, number) for number in range(inputs))
    copy_by_loops(module)
    if emulates:
        tiles_as_vectors(module)
    run_passes(module, pipeline.FUSION_TO_LOOPS)
    lower_dot_products(module, emulates=emulates)
    lower_lookups(module, emulates=emulates)
    reached("loops", module)
    fill_masked_lanes(module)
    unmask_truths(module)
    store_truths_as_bytes(module)
    lead_loops_with_assertions(module)
    _drop_attributes(module)
    if threads > 1:
        run_passes(module, pipeline.PARALLEL_TO_LOOPS)
    is_divided = threads > 1 and divide_among_threads(fusion_function(module), threads)
    expand_math(module)
    bound_stacks(module, pipeline.FUSION_STACK_BYTES)
    run_passes(module, pipeline.FUSION_LOOPS_TO_LLVM)
    asserts = return_failed_assertions(module, FUSION_ENTRY)
    llvm_text = DEFINITION.sub(rf"\1 attributes {{{pipeline.NO_BUILTINS}}} {{", jit_text(module))
    return FusionCode(llvm_text, packings, is_divided, asserts)


def _drop_attributes(module: ir.Module) -> None:
    """Drops tuner's attributes of functions, marks of scripts, and all of arguments.

    The LLVM dialect refuses those of arguments, and prints others where its parser expects none.
    """
    for function in walk(module, "func.func"):
        for name in list(function.attributes):
            if name.startswith(ATTRIBUTES) or name in ("arg_attrs", *SCRIPT_MARKS):
                del function.attributes[name]
