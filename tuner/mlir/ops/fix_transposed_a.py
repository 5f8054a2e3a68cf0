"""``tuner.fix_transposed_a``: the right lane addresses for a transposed A."""

from typing import Any

from tuner.mlir.bindings import ir
from tuner.mlir.building import affine, symbol, value
from tuner.mlir.ldmatrix import is_transposed, tiles_of
from tuner.mlir.ops.dialect import InPlaceOp, walk


class FixTransposedAOp(InPlaceOp, name="fix_transposed_a"):
    """Corrects every transposed ``nvgpu.ldmatrix`` of four tiles that ``convert-vector-to-gpu`` made.

    That pass gives the fragment of a transposed A (k rows, m columns in shared memory) the lane addresses of
    a B operand: the second and third tile change places, which is wrong numbers. Lanes 8..15 and 16..23
    exchange addresses here. Run right after the pass, before ``tuner.merge_ldmatrix`` makes such loads of B.
    The handle (a func.func) stays valid. Never fails.
    """

    def change(self, function: Any) -> str | None:
        """Changes one function."""
        for load in walk(function, "nvgpu.ldmatrix"):
            if tiles_of(load) == 4 and is_transposed(load):
                _exchange(load)
        return None


def _exchange(load: Any) -> None:
    """Adds d = (lane / 16 - lane / 8 % 2) * 8 to the row, and takes it from the column."""
    row, column = len(load.operands) - 2, len(load.operands) - 1
    with load.location, ir.InsertionPoint(load):
        lane = value("gpu.lane_id", ir.IndexType.get())
        half, eighth = (ir.AffineExpr.get_floor_div(symbol(0), each) for each in (16, 8))
        distance = half * 8 + ir.AffineExpr.get_mod(eighth, 2) * -8
        load.operands[row] = affine(symbol(1) + distance, lane, load.operands[row])
        load.operands[column] = affine(symbol(1) + distance * -1, lane, load.operands[column])
