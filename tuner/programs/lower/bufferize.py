"""Converts the tensors of a program to memrefs and frees them, by upstream's one-shot bufferization.

Takes a module with one function on tensors; returns it on memrefs, results included. Arguments that were
tensors are never written: a tensor is a value, and the caller's value does not change. Loops and branches
whose yields upstream rejects, or would free by address at run time, yield copies (``copy_yields.py``).

    func.func @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
      %empty = tensor.empty() : tensor<4xf32>
      %y = linalg.exp ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
  becomes
    func.func @exp(%x: memref<4xf32>) -> memref<4xf32> {
      %y = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
      linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return %y : memref<4xf32>
    }
"""

from tuner.core.errors import CandidateError
from tuner.mlir.bindings import Op, Type, WalkResult, ir
from tuner.mlir.pipeline import run_passes
from tuner.mlir.rewrite.module_copy import copy_of
from tuner.mlir.rewrite.padded_views import set_argument_attribute
from tuner.mlir.rewrite.walking import walk, walk_ops
from tuner.programs.lower.copy_shared_fills import copy_shared_fills
from tuner.programs.lower.copy_yields import copy_yields, yields_iteration_local_memory
from tuner.programs.lower.crop_negative_padding import crop_negative_padding
from tuner.programs.lower.deallocation import deallocate
from tuner.programs.lower.entry import function_named

ELEMENTWISE = "builtin.module(convert-elementwise-to-linalg)"  # of arith and math operations on tensors
ONE_SHOT = (
    "one-shot-bufferize{bufferize-function-boundaries"
    " function-boundary-type-conversion=identity-layout-map},canonicalize,cse"
)
BUFFERIZE = f"builtin.module(eliminate-empty-tensors,{ONE_SHOT})"
# eliminate-empty-tensors would merge the buffers that the copies keep separate
BUFFERIZE_COPIES = f"builtin.module({ONE_SHOT})"
YIELDS_ANOTHER = "is not equivalent to the corresponding iter bbArg"  # upstream's error for a yield
# The time to bufferize grows with the cube of the uses of an empty tensor: 1,000 take two minutes. One for
# each operation would keep as many buffers alive, since upstream frees them at the end.
EMPTY_USES = 32
TENSORS = ir.RankedTensorType | ir.UnrankedTensorType


def has_tensors(module: ir.Module) -> bool:
    """Returns whether any operand, result or block argument in a module is a tensor."""
    found: list[Type] = []

    def visit(op: Op) -> WalkResult:
        types = [each.type for each in (*op.operands, *op.results)]
        types += [each.type for region in op.regions for block in region.blocks for each in block.arguments]
        found.extend(each for each in types if isinstance(each, TENSORS))
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    walk_ops(module, visit)
    return bool(found)


def bufferized(module: ir.Module, name: str) -> ir.Module:
    """Converts a module's tensors to memrefs and adds deallocations; returns the result.

    ``name`` is the module's function. Only the returned module is valid; it may be ``module`` itself. Raises
    CandidateError(COMPILE) where bufferization fails.
    """
    _protect_arguments(function_named(module, name))
    run_passes(module, ELEMENTWISE)
    crop_negative_padding(function_named(module, name))
    copy_shared_fills(function_named(module, name))
    _share_empty_tensors_less(function_named(module, name))
    copied = copy_of(module)
    if _is_bufferized_without_copies(module, name):
        return module
    copy_yields(function_named(copied, name))
    run_passes(copied, BUFFERIZE_COPIES)
    deallocate(copied)
    return copied


def _share_empty_tensors_less(function: Op) -> None:
    """Gives each ``EMPTY_USES`` uses of a ``tensor.empty`` one of their own, in place."""
    for empty in walk(function, "tensor.empty"):
        uses = [(use.owner.operation, use.operand_number) for use in empty.results[0].uses]
        uses.reverse()  # in the order of the program
        for first in range(EMPTY_USES, len(uses), EMPTY_USES):
            with ir.InsertionPoint.after(empty), empty.location:
                own = empty.clone()
            for user, number in uses[first : first + EMPTY_USES]:
                user.operands[number] = own.results[0]


def _is_bufferized_without_copies(module: ir.Module, name: str) -> bool:
    """Bufferizes in place. True if that succeeded without copies of yields and all memory is freed."""
    try:
        run_passes(module, BUFFERIZE)
        return not yields_iteration_local_memory(function_named(module, name)) and deallocate(module)
    except CandidateError as error:
        if YIELDS_ANOTHER not in error.reason:
            raise
        return False


def _protect_arguments(function: Op) -> None:
    """Marks tensor arguments as not writable."""
    for argument in function.regions[0].blocks[0].arguments:
        if isinstance(argument.type, TENSORS):
            no = ir.BoolAttr.get(False)
            set_argument_attribute(function, argument.arg_number, "bufferization.writable", no)
