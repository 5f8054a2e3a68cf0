"""Moves of values between the lanes of a subgroup, as shuffles of 32 bits, which upstream lowers to PTX."""

from tuner.gpu.ir.warps import shuffled, word
from tuner.mlir.bindings import Op, Value, ir
from tuner.mlir.ir.building import compared, create, value
from tuner.mlir.ir.reading import unsupported, walk

KERNELS = ("gpu.func", "gpu.launch")
FIRST = "first_active_lane"


def expand_lane_moves(module: ir.Module) -> None:
    """Replaces moves of values between the lanes of a subgroup by ``gpu.shuffle``, in place.

    Raises CandidateError(COMPILE) for a broadcast of the first active lane where lanes may have parted.

        %y, %valid = gpu.rotate %x, 3, 16 : f32
      becomes, with %lane as an i32
        %further = arith.addi %lane, %c3 : i32
        %inside = arith.andi %further, %c15 : i32
        %cluster = arith.andi %lane, %c-16 : i32
        %source = arith.addi %cluster, %inside : i32
        %y, %0 = gpu.shuffle idx %x, %source, %c32 : f32
        %valid = arith.cmpi ult, %lane, %c16 : i32
    """
    for op in walk(module, "gpu.rotate"):
        with op.location, ir.InsertionPoint(op):
            moved, is_valid = _rotated(op)
        op.results[0].replace_all_uses_with(moved)
        op.results[1].replace_all_uses_with(is_valid)
        op.erase()
    for op in walk(module, "gpu.subgroup_broadcast"):
        with op.location, ir.InsertionPoint(op):
            moved = shuffled("idx", op.operands[0], _source_of_broadcast(op))
        op.results[0].replace_all_uses_with(moved)
        op.erase()


def _rotated(op: Op) -> tuple[Value, Value]:
    offset, width = (ir.IntegerAttr(op.attributes[name]).value for name in ("offset", "width"))
    type_ = ir.IntegerType.get_signless(32)
    lane = value("arith.index_cast", type_, value("gpu.lane_id", ir.IndexType.get()))
    further = value("arith.addi", type_, lane, word(offset))
    inside = value("arith.andi", type_, further, word(width - 1))
    cluster = value("arith.andi", type_, lane, word(-width))
    source = value("arith.addi", type_, cluster, inside)
    return shuffled("idx", op.operands[0], source), compared("ult", lane, word(width))


def _source_of_broadcast(op: Op) -> Value:
    lanes = list(op.operands)[1:]
    if lanes:
        return lanes[0]
    holder = op.parent
    if holder.name not in KERNELS or len(holder.regions[0].blocks) > 1:
        raise unsupported(op, f"{FIRST} in a loop or a branch", "one that all lanes of a kernel reach")
    return word(0)  # all lanes are active


SHUFFLE_BITS = 32  # of shfl.sync: PTX ISA


def widen_narrow_shuffles(module: ir.Module) -> int:
    """Replaces each ``gpu.shuffle`` of less than 32 bits by one of 32 bits, in place; returns how many.

    shfl.sync has no other size; upstream's pattern only splits shuffles of 64 bits into two.

        %y, %valid = gpu.shuffle xor %x, %offset, %width : f16
      becomes
        %bits = arith.bitcast %x : f16 to i16
        %wide = arith.extui %bits : i16 to i32
        %moved, %valid = gpu.shuffle xor %wide, %offset, %width : i32
        %low = arith.trunci %moved : i32 to i16
        %y = arith.bitcast %low : i16 to f16
    """
    narrow = [op for op in walk(module, "gpu.shuffle") if _bits(op) < SHUFFLE_BITS]
    for op in narrow:
        type_ = op.results[0].type
        bits = ir.IntegerType.get_signless(_bits(op))
        wide = ir.IntegerType.get_signless(SHUFFLE_BITS)
        with op.location, ir.InsertionPoint(op):
            own = op.operands[0] if type_ == bits else value("arith.bitcast", bits, op.operands[0])
            moved = create(
                "gpu.shuffle",
                [wide, op.results[1].type],
                [value("arith.extui", wide, own), *list(op.operands)[1:]],
                mode=op.attributes["mode"],
            )
            low = value("arith.trunci", bits, moved.results[0])
            result = low if type_ == bits else value("arith.bitcast", type_, low)
        op.results[0].replace_all_uses_with(result)
        op.results[1].replace_all_uses_with(moved.results[1])
        op.erase()
    return len(narrow)


def _bits(op: Op) -> int:
    type_ = op.results[0].type
    if isinstance(type_, ir.IntegerType | ir.FloatType):
        return int(type_.width)
    return SHUFFLE_BITS
