"""``tuner.fix_transposed_a``: corrects the lane addresses of a transposed A.

Takes a function right after ``convert-vector-to-gpu``. That pass gives the fragment of a transposed A (k
rows, m columns in shared memory) the lane addresses of a B operand: the second and third of four tiles are
exchanged, so that results are wrong. Exchanges the addresses of lanes 8..15 and 16..23. Not handled: loads
that ``tuner.merge_ldmatrix`` made, which are correct and look the same: run before it.

    %x = nvgpu.ldmatrix %tile[%i, %j] {numTiles = 4 : i32, transpose = true} : ...
  becomes
    %lane = gpu.lane_id
    %row = affine.apply affine_map<()[s0, s1] -> (s1 + (s0 floordiv 16) * 8 - ...)>()[%lane, %i]
    %column = affine.apply affine_map<()[s0, s1] -> (s1 - ((s0 floordiv 16) * 8 - ...))>()[%lane, %j]
    %x = nvgpu.ldmatrix %tile[%row, %column] {numTiles = 4 : i32, transpose = true} : ...
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ops.dialect import InPlaceOp
from tuner.mlir.rewrite.building import affine, symbol, value
from tuner.mlir.rewrite.ldmatrix import is_transposed, tiles_of
from tuner.mlir.rewrite.walking import walk


class FixTransposedAOp(InPlaceOp, name="fix_transposed_a"):
    """The transform op ``tuner.fix_transposed_a``, which corrects the lane addresses of a transposed A.

    Changes every transposed ``nvgpu.ldmatrix`` of four tiles. Run this op once, right after
    ``convert-vector-to-gpu``, whose addresses are wrong; correct loads become wrong. The handle (a func.func)
    stays valid. Never fails.
    """

    def change(self, function: Op) -> str | None:
        """Exchanges the addresses of lanes 8..15 and 16..23 of transposed ``nvgpu.ldmatrix`` ops.

        Changes all such ops of four tiles in one function, in place; always returns None.
        """
        for load in walk(function, "nvgpu.ldmatrix"):
            if tiles_of(load) == 4 and is_transposed(load):
                _exchange(load)
        return None


def _exchange(load: Op) -> None:
    """Adds d = (lane / 16 - lane / 8 % 2) * 8 to the row, and subtracts d from the column."""
    row, column = len(load.operands) - 2, len(load.operands) - 1
    with load.location, ir.InsertionPoint(load):
        lane = value("gpu.lane_id", ir.IndexType.get())
        half, eighth = (ir.AffineExpr.get_floor_div(symbol(0), each) for each in (16, 8))
        distance = half * 8 + ir.AffineExpr.get_mod(eighth, 2) * -8
        load.operands[row] = affine(symbol(1) + distance, lane, load.operands[row])
        load.operands[column] = affine(symbol(1) + distance * -1, lane, load.operands[column])
