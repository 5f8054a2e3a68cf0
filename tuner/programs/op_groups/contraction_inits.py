"""Lets each contraction begin with zeros: what it adds to becomes an elementwise sum after it, an epilogue.

  %r = linalg.conv_2d_nchw_fchw ins(%x, %w) outs(%bias)
becomes
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w) outs(%zeros)
  %r = linalg.generic ins(%c, %bias)  // c + bias
"""

from tuner.mlir.bindings import Op, ir
from tuner.programs.op_groups.generics import summed, zeros
from tuner.programs.op_groups.op_names import CONTRACTIONS, FILL, defining, inits_of
from tuner.programs.op_groups.payload import TensorPayload
from tuner.programs.op_groups.stores import number_of


def begin_with_zeros(payload: TensorPayload) -> None:
    """Replaces initial values of contractions by zeros and a sum, in place."""
    for op in payload.ops:
        if op.name in CONTRACTIONS and not _begins_with_zeros(op):
            _split(op)


def _begins_with_zeros(op: Op) -> bool:
    init = inits_of(op)[0]
    producer = defining(init)
    return producer is not None and producer.name == FILL and number_of(init) == 0.0


def _split(op: Op) -> None:
    result, init = op.results[0], inits_of(op)[0]
    with ir.InsertionPoint(op), ir.Location.unknown():
        op.operands[len(op.operands) - 1] = zeros(result.type)
    with ir.InsertionPoint.after(op), ir.Location.unknown():
        total = summed(result, init)
    result.replace_all_uses_except(total.results[0], total)
