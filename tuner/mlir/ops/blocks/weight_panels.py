"""Weights of a convolution as panels of filters: the type of the argument that holds them.

A tile that reads a part of the filters of an argument ``tuner.weight`` takes that part as a panel::

    %w: memref<3x3x64x128xf32> {tuner.weight}, read as [3, 3, 64, 32]
  becomes
    %w: memref<4x3x3x64x32xf32> {tuner.packing = 32 : i64, tuner.weight}
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.blocks.convolution_tile import WEIGHTS, ConvolutionTile
from tuner.mlir.ops.reorder_weights import is_weight
from tuner.mlir.rewrite.building import index, value
from tuner.mlir.rewrite.definitions import op_of
from tuner.mlir.rewrite.packed_weights import ORDER, set_packed_as
from tuner.mlir.rewrite.padded_views import argument_attributes


def panels_of(tile: ConvolutionTile, function: Op) -> tuple[Value, tuple[Value, ...]]:
    """Returns (buffer, indices): where a tile's weights lie; the indices come before those of a tile.

    Weights that are a part of the columns of an argument, read by this tile alone, become panels: the
    argument is changed in place, and the index of the panel is created. Other weights stay as they are.
    """
    weights = tile.buffer(WEIGHTS)
    view = op_of(weights, "memref.subview")
    if view is None or not _is_of_columns(view, function):
        return weights, ()
    argument, width = view.operands[0], weights.type.shape[-1]
    *rows, columns = ir.MemRefType(argument.type).shape
    panel = value("arith.divui", ir.IndexType.get(), view.operands[1], index(width))
    kind = ir.MemRefType.get([columns // width, *rows, width], argument.type.element_type)
    number = ir.BlockArgument(argument).arg_number
    order = () if ORDER in argument_attributes(function, number) else range(len(kind.shape) - 1)
    set_packed_as(function, number, kind, width, order)
    return argument, (panel,)


def _is_of_columns(view: Op, function: Op) -> bool:
    """Returns whether a view is whole columns of an argument of weights that has no other use."""
    source, part = view.operands[0], view.results[0]
    if not is_weight(function, source) or len(list(source.uses)) != 1 or len(list(part.uses)) != 1:
        return False
    of_source, of_part = source.type.shape, part.type.shape
    has_all_rows = len(of_source) == len(of_part) and of_source[:-1] == of_part[:-1]
    return has_all_rows and len(view.operands) == 2 and of_source[-1] % of_part[-1] == 0
