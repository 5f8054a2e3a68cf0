"""``tuner.split_k``: split-K: each block along z computes a part of the loop over K.

Takes a function with ``gpu.launch`` whose body has one loop at its top level, from 0, with constant bounds.
Gives ``slices`` blocks along z, each with one ``slices``-th of the iterations. Every block then has only a
part of each sum: ``tuner.finish_stores`` must add the parts, or store them to a workspace. Upstream's
transform for this, tiling a reduction by ``scf.forall``, warns at every use. Not handled: several loops,
dynamic bounds, a grid with blocks along z.

    scf.for %k = %c0 to %c96 step %c8 {
      memref.store %x, %c[%k] : memref<96xf32>
  with slices = 4 becomes
    %slice = gpu.block_id z
    scf.for %j = %c0 to %c24 step %c8 {
      %k = affine.apply affine_map<()[s0, s1] -> (s0 + s1 * 24)>()[%j, %slice]
      memref.store %x, %c[%k] : memref<96xf32>
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.ops.dialect import InPlaceOp, attribute
from tuner.mlir.rewrite.building import affine, index, symbol
from tuner.mlir.rewrite.definitions import constant_of
from tuner.mlir.rewrite.gpu_indices import index_along
from tuner.mlir.rewrite.walking import walk

GRID_Z = 2  # number of the operand of gpu.launch: blocks along z


class SplitKOp(InPlaceOp, name="split_k"):
    """The transform op ``tuner.split_k``, which divides the loop over K of a kernel among several blocks.

    Changes every ``gpu.launch``. Attribute ``slices`` (i64, default 1): blocks along z, each of which runs
    one ``slices``-th of the iterations and so has only a part of each sum. The handle (a func.func) stays
    valid. Silenceable failure: a launch without exactly one loop at its top level, a loop that does not start
    at 0 or is not constant, more than one block along z, a number of iterations that is not a multiple of
    ``slices``.
    """

    def change(self, function: Op) -> str | None:
        """Divides the loop over K of each ``gpu.launch`` in one function among blocks along z, in place.

        Returns None, or a message about the first launch that cannot be split; launches before it are split.
        """
        slices = attribute(self, "slices", 1)
        for launch in walk(function, "gpu.launch"):
            loops = _loops(launch)
            reason = _why_not(launch, loops, slices)
            if reason is not None:
                return reason
            _split(launch, loops[0], slices)
        return None


def _loops(launch: Op) -> list[Op]:
    body = (op.operation for op in launch.regions[0].blocks[0].operations)
    return [op for op in body if op.name == "scf.for"]


def _why_not(launch: Op, loops: list[Op], slices: int) -> str | None:
    """Returns why a launch cannot be split, else None."""
    if len(loops) != 1:
        return f"found {len(loops)} loops in a launch, allowed 1"
    if constant_of(launch.operands[GRID_Z]) != 1:
        return "found a launch with more than one block along z, or not constant"
    bounds = [constant_of(number) for number in list(loops[0].operands)[:3]]
    lower, upper, step = bounds
    if lower != 0 or upper is None or step is None:
        return f"found a loop from {lower} to {upper} by {step}, allowed constants, from 0"
    if slices < 1 or upper % (step * slices):
        return f"slices: found {slices}, allowed what divides {upper // step} trips"
    return None


def _split(launch: Op, loop: Op, slices: int) -> None:
    """Shortens the loop to one slice, and offsets the uses of its induction variable."""
    length = (constant_of(loop.operands[1]) or 0) // slices
    with launch.location:
        with ir.InsertionPoint(launch):
            launch.operands[GRID_Z] = index(slices)
        with ir.InsertionPoint(loop):
            block = index_along("gpu.block_id", "z")
            loop.operands[1] = index(length)
        body = loop.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(body):
            at = affine(symbol(0) + symbol(1) * length, body.arguments[0], block)
        for use in list(body.arguments[0].uses):
            if use.owner.operation != at.owner:
                use.owner.operation.operands[use.operand_number] = at
