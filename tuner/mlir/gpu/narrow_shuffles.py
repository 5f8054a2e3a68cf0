"""Widens ``gpu.shuffle`` of 8 and 16 bits to 32 bits, the only size that shfl.sync has.

Takes kernels before the lowering to NVVM. Upstream's pattern splits shuffles of 64 bits into two.

    %y, %valid = gpu.shuffle xor %x, %offset, %width : f16
  becomes
    %bits = arith.bitcast %x : f16 to i16
    %wide = arith.extui %bits : i16 to i32
    %moved, %valid = gpu.shuffle xor %wide, %offset, %width : i32
    %low = arith.trunci %moved : i32 to i16
    %y = arith.bitcast %low : i16 to f16
"""

from tuner.mlir.bindings import Op, ir
from tuner.mlir.rewrite.building import create, value
from tuner.mlir.rewrite.walking import walk

SHUFFLE_BITS = 32  # of shfl.sync: PTX ISA


def widen_narrow_shuffles(module: ir.Module) -> int:
    """Replaces each ``gpu.shuffle`` of less than 32 bits by one of 32 bits, in place; returns how many."""
    narrow = [op for op in walk(module, "gpu.shuffle") if _bits(op) < SHUFFLE_BITS]
    for op in narrow:
        _widen(op)
    return len(narrow)


def _widen(op: Op) -> None:
    kind = op.results[0].type
    bits, wide = ir.IntegerType.get_signless(_bits(op)), ir.IntegerType.get_signless(SHUFFLE_BITS)
    with op.location, ir.InsertionPoint(op):
        own = op.operands[0] if kind == bits else value("arith.bitcast", bits, op.operands[0])
        moved = create(
            "gpu.shuffle",
            [wide, op.results[1].type],
            [value("arith.extui", wide, own), *list(op.operands)[1:]],
            mode=op.attributes["mode"],
        )
        low = value("arith.trunci", bits, moved.results[0])
        result = low if kind == bits else value("arith.bitcast", kind, low)
    op.results[0].replace_all_uses_with(result)
    op.results[1].replace_all_uses_with(moved.results[1])
    op.erase()


def _bits(op: Op) -> int:
    kind = op.results[0].type
    return int(kind.width) if isinstance(kind, ir.IntegerType | ir.FloatType) else SHUFFLE_BITS
