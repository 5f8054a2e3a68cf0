"""Lowers a transformed payload to LLVM dialect for the JIT.

Takes a module of functions on memrefs with static sizes, tiled and vectorized by a script; gives the text of
LLVM dialect, each function an entry point that takes bare pointers. Not handled: ops on tensors (a script
bufferizes), GPU ops; both are errors.

    func.func @f(%c: memref<4x8xf32, strided<[9, 1]>>, %i: index, %j: index) {
      memref.store %x, %c[%i, %j] : memref<4x8xf32, strided<[9, 1]>>
  becomes
    llvm.func @f(%c: !llvm.ptr, %i: i64, %j: i64) attributes {llvm.emit_c_interface, ...["no-builtins"]} {
      %row = llvm.mul %i, %c9 overflow<nsw, nuw> : i64
      %at = llvm.add %row, %j overflow<nsw, nuw> : i64
      %p = llvm.getelementptr inbounds|nuw %base[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %x, %p : f32, !llvm.ptr
"""

from tuner.mlir.bindings import ir
from tuner.mlir.cpu.bf16_as_integers import BF16, store_bf16_as_integers
from tuner.mlir.cpu.pipeline import EXPORTED, LOOPS_TO_LLVM, NO_BUILTINS, TO_LOOPS
from tuner.mlir.cpu.tiles_as_vectors import tiles_as_vectors
from tuner.mlir.lowering_stages import reached
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.byte_dots import lower_byte_dots

BF16_DOT = "llvm.x86.avx512bf16.dpbf16ps"  # the intrinsic, whose operands stay bf16


def lower_to_llvm(module: ir.Module, *, emulates: bool = False) -> str:
    """Lowers a transformed payload to LLVM dialect in place; returns the text of the module for the JIT.

    ``module`` holds functions on memrefs of static sizes; each becomes an entry point that takes bare
    pointers. ``emulates``: AMX tiles and dot products of bytes become vector code, which every processor
    runs. Raises CandidateError(COMPILE) where a pass fails, for example on ops of tensors.
    """
    if emulates:
        tiles_as_vectors(module)
    for op in module.body.operations:
        if op.operation.name == "func.func" and not op.is_external:
            op.attributes[EXPORTED] = ir.UnitAttr.get()
    run_passes(module, TO_LOOPS)
    lower_byte_dots(module, emulates=emulates)
    reached("loops", module)
    run_passes(module, LOOPS_TO_LLVM)
    return jit_text(module)


def jit_text(module: ir.Module) -> str:
    """Returns the text of a module in LLVM dialect for the JIT, with bf16 stored as 16-bit integers.

    The module is changed in place. Code with a dot product of AVX512-BF16 keeps bf16, since it needs a
    processor that has AVX512-BF16. In the text, exported functions get ``no-builtins``, so that LLVM does not
    replace their loops by library calls.
    """
    text = str(module)
    if BF16 in text and BF16_DOT not in text:
        store_bf16_as_integers(module)
        text = str(module)
    marked = f"attributes {{{EXPORTED}}}"
    return text.replace(marked, f"attributes {{{EXPORTED}, {NO_BUILTINS}}}")
