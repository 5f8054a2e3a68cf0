"""``tuner.overlap_tiles``: the last tile of a loop begins earlier, so that all tiles have one size.

Takes a function on tensors, tiled by sizes that do not divide the extents. Where the last tile of a loop
would be smaller, it begins so far before its place that it is whole: it computes some elements of the tile
before it once more, to the same numbers. No tile has a dynamic size then, nothing is peeled, and the code is
there once. Only for loops whose iterations do not read what others have written: tiles of parallel dimensions
whose results are written as a whole. Not changed: loops that are shorter than one tile, and loops with
bounds that are not constant.

    %all = scf.for %i = %c0 to %c55 step %c14 ... {
      %size = affine.min affine_map<(d0) -> (-d0 + 55, 14)>(%i)
      %tile = tensor.extract_slice %x[%i] [%size] [1] : tensor<55xf32> to tensor<?xf32>
  becomes, after canonicalization
    %all = scf.for %i = %c0 to %c55 step %c14 ... {
      %first = affine.min affine_map<(d0) -> (41, d0)>(%i)
      %tile = tensor.extract_slice %x[%first] [14] [1] : tensor<55xf32> to tensor<14xf32>
"""

from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.building import index, value
from tuner.mlir.rewrite.definitions import constant_of
from tuner.mlir.rewrite.walking import walk

MINIMUM = "affine.min"


class OverlapTilesOp(InPlaceOp, name="overlap_tiles"):
    """The transform op ``tuner.overlap_tiles``: the last tile of each loop overlaps the one before it.

    Changes each ``scf.for`` of constant bounds whose last tile would be smaller. The iterations must be
    independent, and each must write its whole tile: see the module. The handle (a func.func) stays valid.
    Never fails.
    """

    def change(self, function: Op) -> str | None:
        """Lets the last tiles of the loops of one function overlap, in place; always returns None."""
        for loop in walk(function, "scf.for"):
            first, end, step = (constant_of(each) for each in list(loop.operands)[:3])
            if first != 0 or end is None or step is None or end < step or end % step == 0:
                continue
            _overlap(loop, end, step)
        return None


def _overlap(loop: Op, end: int, step: int) -> None:
    block = loop.regions[0].blocks[0]
    number = block.arguments[0]
    uses = [(use.owner.operation, use.operand_number) for use in number.uses]
    sizes = [op for op, _ in uses if op.name == MINIMUM and _is_rest(op, end, step)]
    if not sizes:  # the loop is not tiled by its step
        return
    d0 = ir.AffineDimExpr.get(0)
    with ir.InsertionPoint.at_block_begin(block), loop.location:
        first = _least([ir.AffineConstantExpr.get(end - step), d0], number)
        whole = index(step)
    for op, place in uses:
        op.operands[place] = first
    for op in sizes:
        op.results[0].replace_all_uses_with(whole)
        op.erase()


def _least(expressions: list[ir.AffineExpr], number: Value) -> Value:
    mapping = ir.AffineMapAttr.get(ir.AffineMap.get(1, 0, expressions))
    return value(MINIMUM, ir.IndexType.get(), number, map=mapping)


def _is_rest(op: Op, end: int, step: int) -> bool:
    """Returns whether an ``affine.min`` is the size of a tile: what is left of ``end``, at most ``step``."""
    d0 = ir.AffineDimExpr.get(0)
    rest, whole = end - d0, ir.AffineConstantExpr.get(step)
    mapping = ir.AffineMapAttr(op.attributes["map"]).value
    return len(op.operands) == 1 and set(map(str, mapping.results)) == {str(rest), str(whole)}
